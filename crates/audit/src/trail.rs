//! The running trail, and the handles that add records and reopen its file.

use std::{
    sync::{Arc, atomic::Ordering},
    thread::{self, Thread},
    time::Duration,
};

use portcullis_endpoint::EndedStream;
use portcullis_guard::{Decision, DecisionSink};
use portcullis_metadata::Clock;
use portcullis_session::{EndReason, Session};
use portcullis_telemetry::Effect;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

use crate::{
    administration::{self, AdminAction},
    broker::{self, BrokerAction},
    chain::ChainKeys,
    error::{ChainError, StartError},
    key::UsageKey,
    record,
    settings::{AuditSettings, WithoutChain},
    sink::{Target, check_chain},
    state::State,
    usage::Counts,
    writer::Writer,
};

/// How often a caller that waits for the queue checks it.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Adds records to the trail. Every worker has a clone.
///
/// It never waits: when the queue is full, records are lost and counted, and their number is
/// recorded at their place. As a [`DecisionSink`], it records each decision and counts it for the
/// usage records. A flood of [equal rejections](portcullis_telemetry::Rejections) has one record a
/// second, with their number.
#[derive(Clone)]
pub struct Audit(Arc<State>);

/// Reopens the file of the trail, after another program has renamed it.
pub struct AuditReopener {
    audit: Audit,
    writer: Thread,
}

impl AuditReopener {
    /// Reopens the file, for rotation.
    pub fn reopen(&self) {
        self.audit.0.reopen.store(true, Ordering::Release);
        self.writer.unpark();
    }
}

/// The running trail: a thread that writes the records. [`finish`](Self::finish) ends it.
pub struct AuditTrail {
    audit: Audit,
    writer: Thread,
    done: oneshot::Receiver<()>,
    chain_error: Option<ChainError>,
}

impl AuditTrail {
    /// Opens the sink and starts the thread that writes to it. Records come from `workers` threads,
    /// and few from others. They are chained with the first of `keys`; without, they are not
    /// chained.
    ///
    /// A worker that calls
    /// [`use_slot_of_worker`](portcullis_telemetry::log_queue::use_slot_of_worker) has a part of
    /// the queue of its own. All other threads share one.
    ///
    /// # Errors
    /// Fails when the sink cannot be opened, its chain cannot be continued and the settings do not
    /// permit a new one, or the thread cannot be created.
    pub fn start(
        settings: &AuditSettings,
        keys: Option<&ChainKeys>,
        workers: usize,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let key = keys.and_then(ChainKeys::current).cloned();
        let chain_error = key
            .as_ref()
            .and_then(|_| check_chain(&settings.target).err());
        let chain_error = match (chain_error, settings.without_chain) {
            (Some(error), WithoutChain::Refuse) => return Err(error.into()),
            (error, _) => error,
        };
        let (target, mut opening) = Target::open(&settings.target, settings.rotation)?;
        opening.begins_new_chain = chain_error.is_some();
        let audit = Audit::new(settings, workers, clock);
        let writer = Writer::new(
            Arc::clone(&audit.0),
            (target, opening),
            key,
            settings.usage_interval,
        );
        let (ended, done) = oneshot::channel();
        let running = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                writer.run();
                // The receiver is gone once the shutdown timeout is over.
                let _ = ended.send(());
            });
        let writer = running.map_err(StartError::Thread)?.thread().clone();
        Ok(Self {
            audit,
            writer,
            done,
            chain_error,
        })
    }

    /// Returns why the former chain could not be continued, if a new one began for that reason
    /// ([`WithoutChain::Write`]).
    pub fn chain_error(&self) -> Option<&ChainError> {
        self.chain_error.as_ref()
    }

    /// Returns the handle that adds records.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Returns the handle that reopens the file.
    pub fn reopener(&self) -> AuditReopener {
        AuditReopener {
            audit: self.audit.clone(),
            writer: self.writer.clone(),
        }
    }

    /// Returns whether the queue of the calling thread has at most half of its capacity left.
    pub fn is_half_full(&self) -> bool {
        self.audit.0.queue.is_half_full()
    }

    /// Waits until the writer has taken all queued records, or until `deadline`.
    pub async fn drained(&self, deadline: Instant) {
        while self.audit.0.queue.unwritten() > 0 && Instant::now() < deadline {
            self.writer.unpark();
            sleep(DRAIN_POLL).await;
        }
    }

    /// Waits for at most `within` until everything is written, and logs how many records were
    /// written and lost.
    pub async fn finish(self, within: Duration) {
        let audit = self.audit.clone();
        let is_complete = self.completed(within).await;
        let (records, lost) = (audit.written(), audit.lost());
        if is_complete {
            tracing::info!(
                audit.records = records,
                audit.lost = lost,
                "the audit trail is complete"
            );
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
    pub fn session_opened(&self, session: &Session) {
        self.push(|out| record::session_opened(out, self.0.clock.now(), session));
    }

    /// Records the end of a session.
    pub fn session_ended(&self, session: &Session, reason: EndReason) {
        self.push(|out| record::session_ended(out, self.0.clock.now(), session, reason));
    }

    /// Records that ends of sessions could not be recorded outside the process.
    pub fn ends_not_recorded(&self, ends: usize) {
        self.push(|out| record::ends_not_recorded(out, self.0.clock.now(), ends));
    }

    /// Records that the authorization of an event stream has ended.
    pub fn stream_ended(&self, stream: &EndedStream<'_>) {
        self.push(|out| record::stream_ended(out, stream));
    }

    /// Records a request to the listener for administrators.
    pub fn administered(&self, action: &AdminAction<'_>) {
        self.push(|out| administration::administered(out, self.0.clock.now(), action));
    }

    /// Records what happened at the broker.
    pub fn brokered(&self, action: &BrokerAction<'_>) {
        self.push(|out| broker::brokered(out, self.0.clock.now(), action));
    }

    /// Queues a record, or counts it as lost.
    fn push(&self, record: impl FnOnce(&mut Vec<u8>)) {
        if self.0.queue.push(record).is_err_and(|full| full.is_first) {
            tracing::warn!(
                "audit records are lost from now on: the sink is too slow, and the queue is full"
            );
        }
    }

    /// Returns the number of written records.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// Returns the number of records that were lost because the queue was full.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl DecisionSink for Audit {
    fn decided(&self, decision: &Decision<'_>) {
        let key = UsageKey::of(decision);
        self.0
            .usage
            .count(&key, Counts::one(Effect::of(decision.code)));
        if self.0.rejections.lists_decision(decision) {
            self.push(|out| record::decision(out, decision, &key));
        }
    }
}

#[cfg(test)]
mod tests;
