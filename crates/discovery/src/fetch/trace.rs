//! [`RequestTrace`]: logs each request at level debug.

use http::{Method, StatusCode};
use tokio::time::Instant;
use tracing::Level;

use super::{FetchRequest, error::FetchError, shown_url};

/// A request in progress. Its event has the method, the URL without its query, the status or the
/// error, and the time. It has no header and no body.
pub(super) struct RequestTrace {
    method: Method,
    url: String,
    start: Instant,
}

impl RequestTrace {
    /// Returns `None` if nothing is logged at this level.
    pub(super) fn begin(request: &FetchRequest) -> Option<Self> {
        tracing::enabled!(Level::DEBUG).then(|| Self {
            method: request.method.clone(),
            url: shown_url(&request.url),
            start: Instant::now(),
        })
    }

    /// Logs the result of the request.
    pub(super) fn end(self, result: Result<StatusCode, &FetchError>) {
        let Self { method, url, start } = self;
        let milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        match result {
            Ok(status) => {
                tracing::debug!(%method, url, status = status.as_u16(), milliseconds, "request")
            }
            Err(error) => {
                tracing::debug!(%method, url, error = error.code(), milliseconds, "request failed")
            }
        }
    }
}
