//! [`Recorder`]: a [`Fetch`] that records requests with their responses.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use portcullis_discovery::{
    BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, HttpFetch, OpenResponse,
};
use url::Url;

/// A request and its response.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) request_headers: HeaderMap,
    pub(crate) request_body: Bytes,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Empty for responses whose body is read as a stream.
    pub(crate) body: Bytes,
}

/// A [`Fetch`] that records requests with their responses.
pub(crate) struct Recorder {
    fetch: HttpFetch,
    timeout: Duration,
    exchanges: Mutex<Vec<Exchange>>,
}

impl Recorder {
    /// Creates a recorder with this timeout for each request.
    pub(crate) fn new(timeout: Duration) -> Result<Self, FetchError> {
        Ok(Self {
            fetch: HttpFetch::new(Default::default())?,
            timeout,
            exchanges: Mutex::default(),
        })
    }

    /// Returns all exchanges so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().clone()
    }

    /// Returns the current position, for [`since`](Self::since).
    pub(crate) fn position(&self) -> usize {
        self.exchanges.lock().len()
    }

    /// Returns the exchanges after a position.
    pub(crate) fn since(&self, position: usize) -> Vec<Exchange> {
        self.exchanges().split_off(position)
    }

    /// Keeps a request and its response.
    fn record(&self, request: FetchRequest, status: StatusCode, headers: &HeaderMap, body: &Bytes) {
        let exchange = Exchange {
            method: request.method,
            url: request.url,
            request_headers: request.headers,
            request_body: request.body,
            status,
            headers: headers.clone(),
            body: body.clone(),
        };
        self.exchanges.lock().push(exchange);
    }
}

impl Fetch for Recorder {
    fn fetch(&self, mut request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        request.timeout = self.timeout;
        Box::pin(async move {
            let response = self.fetch.fetch(request.clone()).await?;
            self.record(request, response.status, &response.headers, &response.body);
            Ok(response)
        })
    }

    fn open(&self, mut request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        request.timeout = self.timeout;
        Box::pin(async move {
            let response = self.fetch.open(request.clone()).await?;
            self.record(request, response.status, &response.headers, &Bytes::new());
            Ok(response)
        })
    }
}
