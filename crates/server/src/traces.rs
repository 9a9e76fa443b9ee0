//! Traces: a span for each sampled request, sent to an OTLP receiver.
//!
//! Requests never wait for it. Spans are queued in bounded memory, and a task of the control runtime sends them. Spans that find
//! the queue full, or that the receiver does not accept, are lost and counted. The data of a span is what the guard reports
//! about a request, so that requests that are not sampled cost nothing but their identifiers.

mod exporter;
mod otlp;
mod span;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use portcullis_guard::{Decision, DecisionSink, TraceContext};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use crate::plan::TracesPlan;
use exporter::Exporter;
use span::RequestSpan;

/// The maximum number of queued requests.
const QUEUE: usize = 8192;

/// Adds spans to the queue. Every worker has a clone.
#[derive(Clone)]
pub(crate) struct Traces(Arc<Queue>);

struct Queue {
    spans: mpsc::Sender<RequestSpan>,
    /// The number of requests whose spans were lost.
    lost: AtomicU64,
}

/// The running export.
pub(crate) struct TraceExport {
    traces: Traces,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl TraceExport {
    /// Starts the task that sends spans, on the current runtime.
    ///
    /// # Errors
    /// Fails when the client of the receiver cannot be created.
    pub(crate) fn start(plan: TracesPlan) -> anyhow::Result<Self> {
        let (spans, queued) = mpsc::channel(QUEUE);
        let traces = Traces(Arc::new(Queue { spans, lost: AtomicU64::new(0) }));
        let exporter = Exporter::new(plan, traces.clone()).context("traces")?;
        let (stop, stopped) = oneshot::channel();
        Ok(Self { task: tokio::spawn(exporter.run(queued, stopped)), traces, stop })
    }

    /// Returns the handle that adds spans.
    pub(crate) fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Sends what is queued, for at most `within`.
    pub(crate) async fn finish(self, within: Duration) {
        let Self { traces, stop, mut task } = self;
        // The task ends only after this.
        let _ = stop.send(());
        if timeout(within, &mut task).await.is_err() {
            task.abort();
            tracing::warn!(traces.lost = traces.lost(), "spans are left unsent: the receiver is too slow");
        }
    }
}

impl Traces {
    fn lose(&self, requests: u64) {
        self.0.lost.fetch_add(requests, Ordering::Relaxed);
    }

    fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl DecisionSink for Traces {
    fn decided(&self, decision: &Decision<'_>) {
        let Some(context) = decision.trace.filter(TraceContext::is_sampled) else { return };
        match self.0.spans.try_reserve() {
            Ok(place) => place.send(RequestSpan::new(context, decision)),
            Err(_) => self.lose(1),
        }
    }
}
