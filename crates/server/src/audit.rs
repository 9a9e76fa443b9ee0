//! The audit trail: one JSON line for each decision, each session that begins or ends and each event stream
//! whose authorization has ended, and what was used by whom.
//!
//! Requests never wait for it. Their records go into bounded places in memory, from where a thread of its own writes
//! them. What finds its place full is counted, and the count is written as a record as soon as the sink takes more.

mod key;
mod queue;
mod record;
mod sink;
mod usage;
mod writer;

pub(crate) use sink::dry_run;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use anyhow::Context as _;
use portcullis_endpoint::EndedStream;
use portcullis_guard::{Decision, DecisionSink};
use portcullis_metadata::Clock;
use portcullis_session::{EndReason, Session};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

use crate::plan::AuditPlan;
use queue::Queue;
use sink::Target;
use writer::Writer;

/// How often a full queue is looked at by a caller that can wait for it.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Where records are handed in. Every worker has one.
#[derive(Clone)]
pub(crate) struct Audit(Arc<Shared>);

/// The running trail: what can be asked of it as a whole.
pub(crate) struct AuditTrail {
    audit: Audit,
    writer: Thread,
    done: oneshot::Receiver<()>,
}

struct Shared {
    queue: Queue,
    clock: Arc<dyn Clock>,
    /// The sink is to be opened anew.
    reopen: AtomicBool,
    /// Nothing comes any more.
    finishing: AtomicBool,
    /// Records that the sink took.
    written: AtomicU64,
    /// Records that are being written.
    in_hand: AtomicU64,
    /// Records that found no room.
    lost: AtomicU64,
}

impl AuditTrail {
    /// Opens the sink and starts the thread that writes to it. `workers` threads hand records in, and the control runtime.
    ///
    /// # Errors
    /// When the sink cannot be opened, or the thread not be made.
    pub(crate) fn start(plan: &AuditPlan, workers: usize, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let sink = Target::open(&plan.target).context("audit.target")?;
        let audit = Audit::new(plan, workers, clock);
        let writer = Writer::new(Arc::clone(&audit.0), sink, plan.usage_interval);
        let (ended, done) = oneshot::channel();
        let running = thread::Builder::new().name("audit".to_owned()).spawn(move || {
            writer.run();
            // Nobody waits any more when the time for the end is up.
            let _ = ended.send(());
        })?;
        Ok(Self { audit, writer: running.thread().clone(), done })
    }

    /// Where records are handed in.
    pub(crate) fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Opens the file anew at each SIGHUP, for whoever rotates it.
    ///
    /// # Errors
    /// When the signal cannot be listened to.
    pub(crate) fn reopen_on_hangup(&self) -> std::io::Result<()> {
        let mut hangups = signal(SignalKind::hangup())?;
        let (audit, writer) = (self.audit.clone(), self.writer.clone());
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                audit.0.reopen.store(true, Ordering::Release);
                writer.unpark();
            }
        });
        Ok(())
    }

    /// Whether the place of the calling thread has less than half of its capacity left.
    pub(crate) fn is_half_full(&self) -> bool {
        self.audit.0.queue.is_half_full()
    }

    /// Waits until everything that has been handed in is in the writer's hands or written, at the latest until `deadline`.
    pub(crate) async fn drained(&self, deadline: Instant) {
        while self.audit.0.queue.queued() > 0 && Instant::now() < deadline {
            self.writer.unpark();
            sleep(DRAIN_POLL).await;
        }
    }

    /// Waits until everything is written, for this long at most, and logs what the trail has and what it lacks.
    pub(crate) async fn finish(self, within: Duration) {
        self.audit.0.finishing.store(true, Ordering::Release);
        self.writer.unpark();
        let in_time = timeout(within, self.done).await.is_ok();
        let (written, lost) = (self.audit.written(), self.audit.lost());
        if in_time {
            tracing::info!(audit.records = written, audit.lost = lost, "the audit trail is complete to its end");
        } else {
            let unwritten = self.audit.0.queue.queued() + self.audit.0.in_hand.load(Ordering::Acquire);
            tracing::error!(
                audit.records = written,
                audit.lost = lost,
                audit.unwritten = unwritten,
                "audit records are left unwritten, the sink does not take them"
            );
        }
    }
}

impl Audit {
    fn new(plan: &AuditPlan, workers: usize, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            queue: Queue::new(workers + 1, plan.queue, plan.usage_rows),
            clock,
            reopen: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
            written: AtomicU64::new(0),
            in_hand: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }))
    }

    /// A session began.
    pub(crate) fn session_opened(&self, session: &Session) {
        self.0.queue.put(|out| record::session_opened(out, self.0.clock.now(), session));
    }

    /// A session is over.
    pub(crate) fn session_ended(&self, session: &Session, reason: EndReason) {
        self.0.queue.put(|out| record::session_ended(out, self.0.clock.now(), session, reason));
    }

    /// The authorization of an event stream has ended.
    pub(crate) fn stream_ended(&self, stream: &EndedStream<'_>) {
        self.0.queue.put(|out| record::stream_ended(out, stream));
    }

    fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl DecisionSink for Audit {
    fn decided(&self, decision: &Decision<'_>) {
        self.0.queue.put_decision(decision);
    }
}

#[cfg(test)]
mod tests;
