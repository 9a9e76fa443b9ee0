//! `[shared]`: what replicas share.

use std::path::PathBuf;

use crate::SecretSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[shared]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedStore {
    /// The URL of Redis or Valkey: `redis://` or `rediss://`, without a password.
    #[schemars(example = "rediss://redis.example.com:6379")]
    pub redis: String,
    /// The password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretSource>,
    /// A PEM file with the certificate authorities of Redis. Default: those of the system.
    #[schemars(example = "/etc/portcullis/redis-ca.pem")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Answers 503 to every request for a resource or the broker, except for the broker's metadata
    /// and public keys, while Redis cannot be used. Open event streams are not ended.
    #[serde(default)]
    pub strict: bool,
    /// Confirms that Redis keeps the records of the broker: `appendonly yes`, `appendfsync always`
    /// and no eviction of keys. Only where the user of Redis cannot have `CONFIG GET`, with which
    /// the server checks that.
    #[serde(default)]
    pub assume_durable: bool,
}
