use std::path::PathBuf;

use crate::{SecretSource, Span};
use portcullis_audit::AuditSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::one_form;

/// `[audit]`: the audit trail.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Where the records are written: `"stdout"` or `{ file = "/path" }`.
    #[schemars(example = &"stdout")]
    pub target: AuditTarget,
    /// The maximum size of queued records in bytes.
    #[serde(default = "default_audit_queue")]
    #[schemars(range(min = 65_536, max = 1_073_741_824))]
    pub queue: usize,
    /// The interval of usage records. With zero, usage is recorded at the end only.
    #[serde(default = "default_usage_interval")]
    pub usage_interval: Span,
    /// The number of rows of principal, resource and tool that are counted separately.
    #[serde(default = "default_usage_rows")]
    #[schemars(range(min = 16, max = 1_000_000))]
    pub usage_rows: usize,
    /// The key of the chain of records. Default: one that is generated in the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SecretSource>,
    /// The size in bytes at which the file is rotated; 0: never. Default: 104857600 if the target
    /// is a regular file, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 104_857_600)]
    pub rotate_size: Option<u64>,
    /// The age at which the file is rotated. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "24h")]
    pub rotate_age: Option<Span>,
    /// The number of rotated files that are kept. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 30)]
    #[schemars(range(min = 1, max = 100_000))]
    pub keep: Option<usize>,
    /// What happens if the chain of records cannot be continued.
    #[serde(default)]
    pub without_chain: WithoutChain,
}

/// What happens if there is no key for the chain of records, or the chain cannot be continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WithoutChain {
    /// The server does not start.
    #[default]
    Refuse,
    /// Records are written without a chain, or in a new one.
    Write,
}

/// Where the audit trail is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditTarget {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl<'de> Deserialize<'de> for AuditTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one_form::read(deserializer, &["stdout", "file"], |form, text| {
            match (form, text) {
                ("stdout", None) => Some(Self::Stdout),
                ("file", text) => text.map(|file| Self::File(file.into())),
                _ => None,
            }
        })
    }
}

impl From<WithoutChain> for portcullis_audit::WithoutChain {
    fn from(configured: WithoutChain) -> Self {
        match configured {
            WithoutChain::Refuse => Self::Refuse,
            WithoutChain::Write => Self::Write,
        }
    }
}

impl From<AuditTarget> for portcullis_audit::AuditTarget {
    fn from(configured: AuditTarget) -> Self {
        match configured {
            AuditTarget::Stdout => Self::Stdout,
            AuditTarget::File(path) => Self::File(path),
        }
    }
}

fn default_audit_queue() -> usize {
    AuditSettings::DEFAULT_QUEUE
}

fn default_usage_interval() -> Span {
    Span::new(AuditSettings::DEFAULT_USAGE_INTERVAL)
}

fn default_usage_rows() -> usize {
    AuditSettings::DEFAULT_USAGE_ROWS
}
