use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::{Fetch, FetchError, FetchRequest, HttpFetch, UrlPolicy};
use portcullis_metadata::EscapedText;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval, sleep},
};
use url::Url;

use super::{
    ExportSettings,
    otlp::{self, Service},
    queue::Traces,
};

/// The interval at which queued spans are sent.
const SEND_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of requests whose spans are sent together.
const MAX_BATCH: usize = 512;
/// The number of retries of a batch.
const MAX_RETRIES: u32 = 3;
/// The wait before the first retry. It doubles with each retry.
const FIRST_RETRY_WAIT: Duration = Duration::from_secs(1);
/// The maximum wait before a retry, if the receiver names a longer one in `Retry-After`.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30);
/// The time limit of one HTTP request.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum interval between two log messages about lost spans.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum length of the receiver's message in the log, in characters.
const MAX_MESSAGE: usize = 200;

/// Sends batches of spans to the receiver.
pub(super) struct Exporter {
    fetch: Arc<dyn Fetch>,
    endpoint: Url,
    headers: HeaderMap,
    service: Service,
    traces: Traces,
    /// The number of requests whose loss is logged.
    reported: u64,
    /// The time of the last log message about them.
    reported_at: Option<Instant>,
    /// Whether the last batch was not accepted.
    is_failing: bool,
}

/// Why a batch was not accepted.
enum SendFailure {
    /// It can be sent again, after the time that the receiver names, if it names one.
    Temporary {
        message: String,
        retry_after: Option<Duration>,
    },
    /// The receiver would reject it again.
    Permanent { message: String },
}

/// The request to stop.
struct Stop {
    signal: oneshot::Receiver<()>,
    is_received: bool,
}

impl Exporter {
    /// Returns the exporter for a validated receiver, without a request. Fails when the client of
    /// the receiver cannot be created.
    pub(super) fn new(
        settings: ExportSettings,
        version: &'static str,
        traces: Traces,
    ) -> Result<Self, FetchError> {
        let ExportSettings {
            endpoint,
            headers,
            fetch,
            service_name,
            ..
        } = settings;
        let service = Service {
            name: service_name,
            version,
        };
        let fetch = Arc::new(HttpFetch::new(fetch)?);
        Ok(Self::with_fetch(fetch, endpoint, headers, service, traces))
    }

    fn with_fetch(
        fetch: Arc<dyn Fetch>,
        endpoint: Url,
        headers: HeaderMap,
        service: Service,
        traces: Traces,
    ) -> Self {
        let reported = 0;
        let reported_at = None;
        let is_failing = false;
        Self {
            fetch,
            endpoint,
            headers,
            service,
            traces,
            reported,
            reported_at,
            is_failing,
        }
    }

    /// Sends what is queued at intervals, until it is stopped and the queue is empty. `encode`
    /// returns the body of a request with a service name and the spans of these requests.
    pub(super) async fn run<S>(
        &mut self,
        mut queued: mpsc::Receiver<S>,
        encode: fn(&Service, &[S]) -> Vec<u8>,
        stop: oneshot::Receiver<()>,
    ) {
        let mut stop = Stop {
            signal: stop,
            is_received: false,
        };
        let mut ticks = interval(SEND_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.is_received {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.received() => {}
            }
            self.report_lost_at_intervals();
            while let Some(batch) = take_batch(&mut queued) {
                let body = Bytes::from(encode(&self.service, &batch));
                self.export(body, batch.len() as u64, &mut stop).await;
                // Under load the queue is never empty here.
                self.report_lost_at_intervals();
            }
        }
        self.report_lost();
    }

    /// Sends a batch with the spans of this number of requests. Retries if the receiver is not
    /// available; after the stop, it sends the batch once more at most.
    async fn export(&mut self, body: Bytes, requests: u64, stop: &mut Stop) {
        for retries in 0..=MAX_RETRIES {
            match self.send(body.clone()).await {
                Ok(()) => return self.succeeded(),
                Err(SendFailure::Temporary {
                    message,
                    retry_after,
                }) if retries < MAX_RETRIES && !stop.is_received => {
                    self.failed(&message);
                    tokio::select! {
                        () = sleep(retry_wait(retries, retry_after)) => {}
                        () = stop.received() => {}
                    }
                }
                Err(
                    SendFailure::Temporary { message, .. } | SendFailure::Permanent { message },
                ) => {
                    self.failed(&message);
                    break;
                }
            }
        }
        self.traces.lose(requests);
    }

    /// Sends a request, once. Logs how many spans the receiver rejects.
    async fn send(&self, body: Bytes) -> Result<(), SendFailure> {
        let mut request = FetchRequest::post_json(self.endpoint.clone(), body, UrlPolicy::Operator);
        request.headers.extend(self.headers.clone());
        request.timeout = SEND_TIMEOUT;
        let response = match self.fetch.fetch(request).await {
            Ok(response) => response,
            Err(error) => {
                return Err(SendFailure::Temporary {
                    message: error.to_string(),
                    retry_after: None,
                });
            }
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
            | StatusCode::GATEWAY_TIMEOUT) => {
                let retry_after = retry_after(&response.headers);
                Err(SendFailure::Temporary {
                    message: format!("the status is {status}"),
                    retry_after,
                })
            }
            status => Err(SendFailure::Permanent {
                message: format!("the status is {status}"),
            }),
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

    /// Logs how many requests lost their spans since the last message, unless that was a short time
    /// ago.
    fn report_lost_at_intervals(&mut self) {
        if self
            .reported_at
            .is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL)
        {
            self.report_lost();
        }
    }

    /// Logs how many requests lost their spans since the last message, if there are any.
    fn report_lost(&mut self) {
        let lost = self.traces.lost();
        if lost > self.reported {
            tracing::warn!(
                traces.lost = lost - self.reported,
                "spans of requests were lost: the queue was full, or the receiver did not accept them"
            );
            (self.reported, self.reported_at) = (lost, Some(Instant::now()));
        }
    }
}

impl Stop {
    /// Waits for the request to stop. Returns at once after it.
    async fn received(&mut self) {
        if !self.is_received {
            // A dropped sender also stops the task.
            let _ = (&mut self.signal).await;
            self.is_received = true;
        }
    }
}

/// Takes a batch from the queue without waiting. Returns `None` if the queue is empty.
fn take_batch<S>(queued: &mut mpsc::Receiver<S>) -> Option<Vec<S>> {
    let batch: Vec<_> = std::iter::from_fn(|| queued.try_recv().ok())
        .take(MAX_BATCH)
        .collect();
    (!batch.is_empty()).then_some(batch)
}

/// Returns the wait after this number of retries: at least what the receiver asks for, within the
/// maximum.
fn retry_wait(retries: u32, retry_after: Option<Duration>) -> Duration {
    let wait = FIRST_RETRY_WAIT * 2_u32.pow(retries);
    retry_after.map_or(wait, |after| after.clamp(wait, MAX_RETRY_WAIT))
}

/// Returns the seconds in `Retry-After` (RFC 9110 section 10.2.3). A date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
