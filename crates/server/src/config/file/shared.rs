//! `[shared]`: what replicas share.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::SecretSource;

/// `[shared]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SharedStore {
    /// The URL of Redis or Valkey: `redis://` or `rediss://`, without a password.
    #[schemars(example = "rediss://redis.example.com:6379")]
    pub(crate) redis: String,
    /// The password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<SecretSource>,
    /// A PEM file with the certificate authorities of Redis. Default: those of the system.
    #[schemars(example = "/etc/portcullis/redis-ca.pem")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Answers 503 to every request while Redis cannot be used.
    #[serde(default)]
    pub(crate) strict: bool,
}
