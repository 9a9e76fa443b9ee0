//! The task that sends spans.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use portcullis_discovery::{Fetch, FetchRequest, HttpFetch, UrlPolicy};
use portcullis_metadata::EscapedText;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval, sleep},
};
use url::Url;

use super::{otlp, queue::Traces, span::RequestSpan};
use crate::plan::TracesPlan;

/// How often queued spans are sent.
const INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of requests whose spans are sent together.
const BATCH: usize = 512;
/// How often a batch is sent again, and the wait before the first repetition, which then doubles.
const RETRIES: u32 = 3;
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// The time limit of one HTTP request.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the number of lost spans is logged.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum length of the receiver's message in the log, in characters.
const MAX_MESSAGE: usize = 200;

/// Sends spans to the receiver.
pub(super) struct Exporter {
    fetch: Arc<dyn Fetch>,
    endpoint: Url,
    headers: HeaderMap,
    service_name: String,
    traces: Traces,
    /// The number of lost requests that was logged, and when.
    reported: u64,
    reported_at: Option<Instant>,
    /// Whether the last batch was not accepted.
    is_failing: bool,
}

/// Why a batch was not accepted.
enum SendFailure {
    /// It can be sent again.
    Temporary(String),
    /// The receiver would reject it again.
    Permanent(String),
}

impl Exporter {
    /// Returns the exporter for a validated receiver, without a request.
    ///
    /// # Errors
    /// Fails when the client of the receiver cannot be created.
    pub(super) fn new(plan: TracesPlan, traces: Traces) -> anyhow::Result<Self> {
        let TracesPlan { endpoint, headers, fetch, service_name, .. } = plan;
        let fetch = Arc::new(HttpFetch::new(fetch)?);
        let (reported, reported_at) = (0, None);
        Ok(Self { fetch, endpoint, headers, service_name, traces, reported, reported_at, is_failing: false })
    }

    /// Sends spans at intervals, until it is stopped and the queue is empty.
    pub(super) async fn run(mut self, mut queued: mpsc::Receiver<RequestSpan>, mut stop: oneshot::Receiver<()>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_stopped = false;
        while !is_stopped {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = &mut stop => is_stopped = true,
            }
            while let Some(batch) = take(&mut queued) {
                self.export(&batch, &mut stop, &mut is_stopped).await;
            }
            self.report_lost(is_stopped);
        }
    }

    /// Sends a batch, again if the receiver is not available. After the stop, it is sent once.
    async fn export(&mut self, batch: &[RequestSpan], stop: &mut oneshot::Receiver<()>, is_stopped: &mut bool) {
        let body = Bytes::from(otlp::request(&self.service_name, batch));
        for attempt in 0..=RETRIES {
            let failure = match self.send(body.clone()).await {
                Ok(()) => return self.succeeded(),
                Err(failure) => failure,
            };
            let message = match failure {
                SendFailure::Temporary(message) if attempt < RETRIES && !*is_stopped => {
                    self.failed(&message);
                    tokio::select! {
                        () = sleep(RETRY_WAIT * 2_u32.pow(attempt)) => {}
                        _ = &mut *stop => *is_stopped = true,
                    }
                    continue;
                }
                SendFailure::Temporary(message) | SendFailure::Permanent(message) => message,
            };
            self.failed(&message);
            break;
        }
        self.traces.lose(batch.len() as u64);
    }

    /// Sends a request, once. Logs how many spans the receiver rejects.
    async fn send(&self, body: Bytes) -> Result<(), SendFailure> {
        let mut request = FetchRequest::post_json(self.endpoint.clone(), body, UrlPolicy::Operator);
        request.headers.extend(self.headers.clone());
        request.timeout = SEND_TIMEOUT;
        let response = match self.fetch.fetch(request).await {
            Ok(response) => response,
            Err(error) => return Err(SendFailure::Temporary(error.to_string())),
        };
        match response.status {
            status if status.is_success() => {
                if let Some((spans, reason)) = otlp::rejected(&response.body) {
                    let reason = EscapedText::first(&reason, MAX_MESSAGE);
                    tracing::warn!(traces.rejected = spans, reason = %reason, "the receiver rejected spans");
                }
                Ok(())
            }
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => Err(SendFailure::Temporary(format!("the status is {status}"))),
            status => Err(SendFailure::Permanent(format!("the status is {status}"))),
        }
    }

    /// Logs the first of several failures in a row.
    fn failed(&mut self, message: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(
                traces.endpoint = %EscapedText(&self.endpoint.origin().ascii_serialization()),
                "spans cannot be sent: {}", EscapedText(message)
            );
        }
    }

    fn succeeded(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            tracing::info!("spans are sent again");
        }
    }

    /// Logs how many spans were lost since the last report, at intervals and at the end.
    fn report_lost(&mut self, is_stopped: bool) {
        let lost = self.traces.lost();
        let is_due = self.reported_at.is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL);
        if lost > self.reported && (is_due || is_stopped) {
            tracing::warn!(
                traces.lost = lost - self.reported,
                "spans of requests were lost: the queue was full, or the receiver did not accept them"
            );
            (self.reported, self.reported_at) = (lost, Some(Instant::now()));
        }
    }
}

/// Takes a batch of queued spans without waiting. Returns `None` if there are none.
fn take(queued: &mut mpsc::Receiver<RequestSpan>) -> Option<Vec<RequestSpan>> {
    let batch: Vec<_> = std::iter::from_fn(|| queued.try_recv().ok()).take(BATCH).collect();
    (!batch.is_empty()).then_some(batch)
}
