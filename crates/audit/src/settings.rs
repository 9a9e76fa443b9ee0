//! [`AuditSettings`]: where the audit trail is written, and its limits.

use std::{path::PathBuf, time::Duration};

use crate::rotation::Rotation;

/// Where the audit trail is written, and its limits. [`new`](Self::new) sets the defaults; assign
/// fields to change them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditSettings {
    /// Where the records are written.
    pub target: AuditTarget,
    /// The maximum size of queued records in bytes, for all threads together. Default:
    /// [`DEFAULT_QUEUE`](Self::DEFAULT_QUEUE).
    pub queue: usize,
    /// The interval of usage records. With zero, usage is recorded at the end only. Default:
    /// [`DEFAULT_USAGE_INTERVAL`](Self::DEFAULT_USAGE_INTERVAL).
    pub usage_interval: Duration,
    /// The number of rows of principal, resource and tool that are counted separately. All others
    /// share a row. Default: [`DEFAULT_USAGE_ROWS`](Self::DEFAULT_USAGE_ROWS).
    pub usage_rows: usize,
    /// When the file is rotated. Default: never.
    pub rotation: Rotation,
    /// What happens if the chain cannot be continued. Default: [`WithoutChain::Refuse`].
    pub without_chain: WithoutChain,
    /// The version of the program, in the first record of a process. Default: that of this crate.
    pub version: &'static str,
}

impl AuditSettings {
    /// The default of [`queue`](Self::queue): 64 MiB.
    pub const DEFAULT_QUEUE: usize = 64 << 20;
    /// The default of [`usage_interval`](Self::usage_interval): 5 minutes.
    pub const DEFAULT_USAGE_INTERVAL: Duration = Duration::from_secs(5 * 60);
    /// The default of [`usage_rows`](Self::usage_rows).
    pub const DEFAULT_USAGE_ROWS: usize = 10_000;

    /// Returns the defaults for a target.
    pub fn new(target: AuditTarget) -> Self {
        Self {
            target,
            queue: Self::DEFAULT_QUEUE,
            usage_interval: Self::DEFAULT_USAGE_INTERVAL,
            usage_rows: Self::DEFAULT_USAGE_ROWS,
            rotation: Rotation::default(),
            without_chain: WithoutChain::Refuse,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// Where the audit trail is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// Standard output.
    Stdout,
    /// A file, a named pipe or a device. A new file is readable only by its owner.
    File(PathBuf),
}

/// What happens if the chain of a file cannot be continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutChain {
    /// The trail does not start.
    #[default]
    Refuse,
    /// A new chain begins.
    Write,
}
