//! [`State`]: what the trail, its writer and the recording threads have in common.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64},
};

use portcullis_metadata::Clock;
use portcullis_telemetry::{Rejections, log_queue::LogQueue};

use crate::{settings::AuditSettings, usage::UsageTables};

/// What the trail, its writer and the recording threads have in common.
pub(super) struct State {
    pub(super) queue: LogQueue,
    pub(super) usage: UsageTables,
    /// Equal rejections that have no records of their own.
    pub(super) rejections: Rejections,
    pub(super) clock: Arc<dyn Clock>,
    /// The version of the program.
    pub(super) version: &'static str,
    /// Whether the writer must reopen the sink.
    pub(super) reopen: AtomicBool,
    /// Whether no further records follow.
    pub(super) finishing: AtomicBool,
    /// The number of written records.
    pub(super) written: AtomicU64,
    /// The number of records that are being written.
    pub(super) in_hand: AtomicU64,
    /// The number of records that were lost because the queue was full.
    pub(super) lost: AtomicU64,
}

impl State {
    /// Returns an empty queue with a slot for each of the workers and one for all other threads.
    pub(super) fn new(settings: &AuditSettings, workers: usize, clock: Arc<dyn Clock>) -> Self {
        let slots = workers + 1;
        Self {
            queue: LogQueue::new(slots, settings.queue / slots),
            usage: UsageTables::new(slots, settings.usage_rows),
            rejections: Rejections::default(),
            clock,
            version: settings.version,
            reopen: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
            written: AtomicU64::new(0),
            in_hand: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }
}
