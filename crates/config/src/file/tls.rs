use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[tls]`: the listener's certificate and key files.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// A PEM file with the certificate chain, the server's certificate first.
    #[schemars(example = "/etc/portcullis/tls/fullchain.pem")]
    pub certificates: PathBuf,
    /// A PEM file with the certificate's private key.
    #[schemars(example = "/etc/portcullis/tls/key.pem")]
    pub key: PathBuf,
}
