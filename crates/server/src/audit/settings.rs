//! [`AuditSettings`]: where the audit trail is written, and its limits.

use std::time::Duration;

use super::{chain::ChainKeys, rotation::Rotation};
use crate::config::{AuditTarget, WithoutChain};

/// The validated settings of the audit trail.
#[derive(Clone, Debug)]
pub(crate) struct AuditSettings {
    pub(crate) target: AuditTarget,
    /// The maximum size of queued records in bytes.
    pub(crate) queue: usize,
    /// The interval of usage records. With zero, usage is recorded at the end only.
    pub(crate) usage_interval: Duration,
    /// The number of rows of principal, resource and tool that are counted separately.
    pub(crate) usage_rows: usize,
    pub(crate) rotation: Rotation,
    /// The configured keys of the chain.
    pub(crate) keys: Option<ChainKeys>,
    /// What happens if there is no key, or the chain cannot be continued.
    pub(crate) without_chain: WithoutChain,
}
