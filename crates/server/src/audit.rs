//! The audit trail: JSON lines for decisions, sessions, ended event streams, requests of administrators, and usage.
//!
//! Requests never wait for it. Records are queued in bounded memory, and a thread writes them. When the queue is full, records
//! are lost and counted. The count is written as a record as soon as the sink accepts more.

mod administration;
mod chain;
mod chunk;
mod key;
mod record;
mod rotation;
mod settings;
mod sink;
mod state;
mod tail;
mod usage;
mod verify;
mod writer;

pub(crate) use administration::{AdminAction, AdminPeer};
pub(crate) use chain::{ChainKeys, Head};
pub(crate) use rotation::Rotation;
pub(crate) use settings::AuditSettings;
pub(crate) use sink::{check_chain, dry_run};
pub(crate) use verify::{Break, Report, verify};

use std::{
    sync::{Arc, atomic::Ordering},
    thread::{self, Thread},
    time::Duration,
};

use anyhow::Context as _;
use portcullis_endpoint::EndedStream;
use portcullis_guard::{Decision, DecisionSink};
use portcullis_metadata::Clock;
use portcullis_session::{EndReason, Session};
use portcullis_telemetry::Effect;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

use crate::config::WithoutChain;
use key::UsageKey;
use sink::Target;
use state::State;
use usage::Counts;
use writer::Writer;

/// How often a caller that waits for the queue checks it.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Adds records to the trail. Every worker has a clone.
#[derive(Clone)]
pub(crate) struct Audit(Arc<State>);

/// Reopens the file of the trail.
pub(crate) struct AuditReopener {
    audit: Audit,
    writer: Thread,
}

impl AuditReopener {
    /// Reopens the file, for rotation.
    pub(crate) fn reopen(&self) {
        self.audit.0.reopen.store(true, Ordering::Release);
        self.writer.unpark();
    }
}

/// The running trail.
pub(crate) struct AuditTrail {
    audit: Audit,
    writer: Thread,
    done: oneshot::Receiver<()>,
}

impl AuditTrail {
    /// Opens the sink and starts the thread that writes to it. Records come from `workers` threads and the control runtime.
    /// They are chained with the first of `keys`; without, they are not chained.
    ///
    /// # Errors
    /// Fails when the sink cannot be opened, its chain cannot be continued and nothing else is configured, or the thread cannot be
    /// created.
    pub(crate) fn start(
        settings: &AuditSettings,
        keys: Option<&ChainKeys>,
        workers: usize,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let key = keys.and_then(ChainKeys::current).cloned();
        if key.is_some()
            && let Err(error) = check_chain(&settings.target)
        {
            if settings.without_chain == WithoutChain::Refuse {
                return Err(error);
            }
            tracing::warn!("a new chain of audit records begins: {error:#}");
        }
        let opened = Target::open(&settings.target, settings.rotation).context("audit.target")?;
        let audit = Audit::new(settings, workers, clock);
        let writer = Writer::new(Arc::clone(&audit.0), opened, key, settings.usage_interval);
        let (ended, done) = oneshot::channel();
        let running = thread::Builder::new().name("audit".to_owned()).spawn(move || {
            writer.run();
            // The receiver is gone once the shutdown timeout is over.
            let _ = ended.send(());
        })?;
        Ok(Self { audit, writer: running.thread().clone(), done })
    }

    /// Returns the handle that adds records.
    pub(crate) fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Returns the handle that reopens the file.
    pub(crate) fn reopener(&self) -> AuditReopener {
        AuditReopener { audit: self.audit.clone(), writer: self.writer.clone() }
    }

    /// Returns whether the queue of the calling thread has at most half of its capacity left.
    pub(crate) fn is_half_full(&self) -> bool {
        self.audit.0.queue.is_half_full()
    }

    /// Waits until the writer has taken all queued records, or until `deadline`.
    pub(crate) async fn drained(&self, deadline: Instant) {
        while self.audit.0.queue.unwritten() > 0 && Instant::now() < deadline {
            self.writer.unpark();
            sleep(DRAIN_POLL).await;
        }
    }

    /// Waits for at most `within` until everything is written, and logs how many records were written and lost.
    pub(crate) async fn finish(self, within: Duration) {
        let audit = self.audit.clone();
        let is_complete = self.completed(within).await;
        let (records, lost) = (audit.written(), audit.lost());
        if is_complete {
            tracing::info!(audit.records = records, audit.lost = lost, "the audit trail is complete");
        } else {
            let unwritten = audit.0.queue.unwritten() + audit.0.in_hand.load(Ordering::Acquire);
            tracing::error!(
                audit.records = records,
                audit.lost = lost,
                audit.unwritten = unwritten,
                "audit records are left unwritten: the sink does not accept them, or the writer has failed"
            );
        }
    }

    /// Waits for at most `within` until everything is written. Returns whether it is.
    async fn completed(self, within: Duration) -> bool {
        self.audit.0.finishing.store(true, Ordering::Release);
        self.writer.unpark();
        // A writer that panics drops its sender.
        matches!(timeout(within, self.done).await, Ok(Ok(())))
    }
}

impl Audit {
    fn new(settings: &AuditSettings, workers: usize, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(State::new(settings, workers, clock)))
    }

    /// Records the start of a session.
    pub(crate) fn session_opened(&self, session: &Session) {
        self.push(|out| record::session_opened(out, self.0.clock.now(), session));
    }

    /// Records the end of a session.
    pub(crate) fn session_ended(&self, session: &Session, reason: EndReason) {
        self.push(|out| record::session_ended(out, self.0.clock.now(), session, reason));
    }

    /// Records that ends of sessions could not be recorded outside the process.
    pub(crate) fn ends_not_recorded(&self, ends: usize) {
        self.push(|out| record::ends_not_recorded(out, self.0.clock.now(), ends));
    }

    /// Records that the authorization of an event stream has ended.
    pub(crate) fn stream_ended(&self, stream: &EndedStream<'_>) {
        self.push(|out| record::stream_ended(out, stream));
    }

    /// Records a request to the listener for administrators.
    pub(crate) fn administered(&self, action: &AdminAction<'_>) {
        self.push(|out| administration::administered(out, self.0.clock.now(), action));
    }

    /// Queues a record, or counts it as lost.
    fn push(&self, record: impl FnOnce(&mut Vec<u8>)) {
        if self.0.queue.push(record).is_err_and(|full| full.is_first) {
            tracing::warn!("audit records are lost from now on: the sink is too slow, and the queue is full");
        }
    }

    /// Returns the number of written records.
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// Returns the number of records that were lost because the queue was full.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl DecisionSink for Audit {
    fn decided(&self, decision: &Decision<'_>) {
        let key = UsageKey::of(decision);
        self.0.usage.count(&key, Counts::one(Effect::of(decision.code)));
        self.push(|out| record::decision(out, decision, &key));
    }
}

#[cfg(test)]
mod tests;
