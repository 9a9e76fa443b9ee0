//! All requests of a walk go through here, and are remembered with their answers.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use portcullis_discovery::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, HttpFetch, OpenResponse};
use url::Url;

/// A request and its answer.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) request_headers: HeaderMap,
    pub(super) request_body: Bytes,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// Empty for answers whose body is read piece by piece.
    pub(super) body: Bytes,
}

/// A fetcher that remembers.
pub(super) struct Wire {
    fetch: HttpFetch,
    patience: Duration,
    exchanges: Mutex<Vec<Exchange>>,
}

impl Wire {
    /// Waits for each answer this long.
    pub(super) fn new(patience: Duration) -> Result<Self, FetchError> {
        Ok(Self { fetch: HttpFetch::new(Default::default())?, patience, exchanges: Mutex::default() })
    }

    /// All exchanges so far.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives a count for [`since`](Self::since).
    pub(super) fn mark(&self) -> usize {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The exchanges after a mark.
    pub(super) fn since(&self, mark: usize) -> Vec<Exchange> {
        self.exchanges().split_off(mark)
    }

    fn keep(&self, request: FetchRequest, status: StatusCode, headers: &HeaderMap, body: &Bytes) {
        let exchange = Exchange {
            method: request.method,
            url: request.url,
            request_headers: request.headers,
            request_body: request.body,
            status,
            headers: headers.clone(),
            body: body.clone(),
        };
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }
}

impl Fetch for Wire {
    fn fetch(&self, mut request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        request.timeout = self.patience;
        Box::pin(async move {
            let answer = self.fetch.fetch(request.clone()).await?;
            self.keep(request, answer.status, &answer.headers, &answer.body);
            Ok(answer)
        })
    }

    fn open(&self, mut request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        request.timeout = self.patience;
        Box::pin(async move {
            let answer = self.fetch.open(request.clone()).await?;
            self.keep(request, answer.status, &answer.headers, &Bytes::new());
            Ok(answer)
        })
    }
}
