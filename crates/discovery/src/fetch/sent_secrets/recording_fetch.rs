//! [`RecordingFetch`]: a fetcher that knows which secrets it has sent.

use std::sync::Arc;

use super::SentSecrets;
use crate::fetch::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, OpenResponse};

/// Sends requests with another [`Fetch`], records their secrets, and attaches them to the
/// responses: excerpts of these do not repeat a secret, whichever request sent it.
pub struct RecordingFetch {
    fetch: Arc<dyn Fetch>,
    sent: SentSecrets,
}

impl RecordingFetch {
    /// Records the secrets of requests in `sent`.
    pub fn new(fetch: Arc<dyn Fetch>, sent: SentSecrets) -> Self {
        Self { fetch, sent }
    }
}

impl Fetch for RecordingFetch {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        self.sent.record(&request);
        Box::pin(async {
            let response = self.fetch.fetch(request).await?;
            Ok(FetchResponse {
                sent: self.sent.clone(),
                ..response
            })
        })
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        self.sent.record(&request);
        Box::pin(async {
            let response = self.fetch.open(request).await?;
            Ok(OpenResponse {
                sent: self.sent.clone(),
                ..response
            })
        })
    }
}
