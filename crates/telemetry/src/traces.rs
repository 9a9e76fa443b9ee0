//! Traces: a span for each sampled request, sent to an OTLP receiver.
//!
//! Requests never wait for it. Spans are queued in bounded memory, and a task of the control
//! runtime sends them. Spans that find the queue full, or that the receiver does not accept, are
//! lost and counted. The data of a span is what the guard reports about a request, so that requests
//! that are not sampled cost nothing but their identifiers.

mod exporter;
mod otlp;
mod queue;
mod span;

use std::time::Duration;

use http::HeaderMap;
use portcullis_discovery::{FetchError, FetchSettings};
use portcullis_guard::trace::TraceSettings;
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use url::Url;

use exporter::Exporter;

pub use queue::Traces;

/// The receiver of spans, and what is sent to it.
#[derive(Clone, Debug)]
pub struct ExportSettings {
    /// The URL to which spans are posted, such as `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: Url,
    /// Headers of each request to it, such as `Authorization`. They are not logged.
    pub headers: HeaderMap,
    /// The proxy and the certificates of requests to it.
    pub fetch: FetchSettings,
    /// `service.name` of the spans.
    pub service_name: String,
    /// Which requests are recorded. The guard decides it.
    pub sampling: TraceSettings,
}

/// The running export.
pub struct TraceExport {
    traces: Traces,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl TraceExport {
    /// Starts the task that sends spans, on the current runtime. `version` is that of the program
    /// (`service.version`).
    ///
    /// # Errors
    /// Fails when the client of the receiver cannot be created.
    pub fn start(settings: ExportSettings, version: &'static str) -> Result<Self, FetchError> {
        let (traces, queued) = Traces::new();
        let mut exporter = Exporter::new(settings, version, traces.clone())?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move { exporter.run(queued, otlp::request, stopped).await });
        Ok(Self { traces, stop, task })
    }

    /// Returns the handle that adds spans.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Sends what is queued, for at most `within`.
    pub async fn finish(self, within: Duration) {
        let Self { stop, mut task, .. } = self;
        // The task ends only after this.
        let _ = stop.send(());
        if timeout(within, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("spans are left unsent: the receiver is too slow");
        }
    }
}
