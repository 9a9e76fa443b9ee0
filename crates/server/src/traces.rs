//! Traces: a span for each sampled request, sent to an OTLP receiver.
//!
//! Requests never wait for it. Spans are queued in bounded memory, and a task of the control runtime sends them. Spans that find
//! the queue full, or that the receiver does not accept, are lost and counted. The data of a span is what the guard reports
//! about a request, so that requests that are not sampled cost nothing but their identifiers.

mod exporter;
mod otlp;
mod queue;
mod span;

use std::time::Duration;

use anyhow::Context as _;
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

use crate::plan::TracesPlan;
use exporter::Exporter;

pub(crate) use queue::Traces;

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
        let (traces, queued) = Traces::new();
        let mut exporter = Exporter::new(plan, traces.clone()).context("traces")?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move { exporter.run(queued, otlp::request, stopped).await });
        Ok(Self { traces, stop, task })
    }

    /// Returns the handle that adds spans.
    pub(crate) fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Sends what is queued, for at most `within`.
    pub(crate) async fn finish(self, within: Duration) {
        let Self { stop, mut task, .. } = self;
        // The task ends only after this.
        let _ = stop.send(());
        if timeout(within, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("spans are left unsent: the receiver is too slow");
        }
    }
}
