//! [`Traces`]: the bounded queue of requests whose spans are sent.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use portcullis_guard::{Decision, DecisionSink, trace::TraceContext};
use tokio::sync::mpsc;

use super::span::RequestSpan;

/// The maximum number of queued requests.
const QUEUE: usize = 8192;

/// Adds spans to the queue. Every worker has a clone.
#[derive(Clone)]
pub struct Traces(Arc<Queue>);

struct Queue {
    spans: mpsc::Sender<RequestSpan>,
    /// The number of requests whose spans were lost.
    lost: AtomicU64,
}

impl Traces {
    /// Returns a handle of an empty queue, and the queued requests.
    pub(super) fn new() -> (Self, mpsc::Receiver<RequestSpan>) {
        let (spans, queued) = mpsc::channel(QUEUE);
        (
            Self(Arc::new(Queue {
                spans,
                lost: AtomicU64::new(0),
            })),
            queued,
        )
    }

    /// Counts requests whose spans are lost.
    pub(super) fn lose(&self, requests: u64) {
        self.0.lost.fetch_add(requests, Ordering::Relaxed);
    }

    /// Returns the number of requests whose spans were lost.
    pub(super) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl DecisionSink for Traces {
    fn decided(&self, decision: &Decision<'_>) {
        let Some(context) = decision.trace.filter(TraceContext::is_sampled) else {
            return;
        };
        match self.0.spans.try_reserve() {
            Ok(place) => place.send(RequestSpan::new(context, decision)),
            Err(_) => self.lose(1),
        }
    }
}
