//! [`FetchFn`]: a [`Fetch`] that responds with a function.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use portcullis_discovery::{
    BodyStream, BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, NetworkFailure, OpenResponse,
};

use crate::protected_resource::PRM_URL;

/// A response of a [`FetchFn`].
#[derive(Debug)]
pub struct Reply {
    status: u16,
    headers: HeaderMap,
    pieces: Vec<Bytes>,
}

impl Reply {
    /// A response with a status and an empty body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: HeaderMap::new(), pieces: Vec::new() }
    }

    /// A response with an `application/json` body.
    pub fn json(status: u16, body: impl ToString) -> Self {
        Self::status(status).body(&[body.to_string().as_bytes()]).header(header::CONTENT_TYPE, "application/json")
    }

    /// An event stream that arrives in pieces.
    pub fn events(pieces: &[&str]) -> Self {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        Self::status(200).body(&pieces).header(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")
    }

    /// A 401 with a `Bearer` challenge that names [`PRM_URL`].
    pub fn challenge() -> Self {
        let value = format!(r#"Bearer realm="mcp", resource_metadata="{PRM_URL}", scope="mcp:tools""#);
        Self::status(401).header(header::WWW_AUTHENTICATE, &value)
    }

    /// Sets a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.insert(name, HeaderValue::from_str(value).expect("a header value"));
        self
    }

    fn body(mut self, pieces: &[&[u8]]) -> Self {
        self.pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
        self
    }
}

type Respond = dyn Fn(&FetchRequest) -> Option<Reply> + Send + Sync;

/// A [`Fetch`] that responds with a function and records the requests. When the function returns `None`, the connection is
/// refused.
pub struct FetchFn {
    respond: Box<Respond>,
    requests: Mutex<Vec<FetchRequest>>,
}

impl FetchFn {
    /// Creates a network that responds with `respond`.
    pub fn new(respond: impl Fn(&FetchRequest) -> Option<Reply> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { respond: Box::new(respond), requests: Mutex::default() })
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<FetchRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests to this URL.
    pub fn to(&self, url: &str) -> Vec<FetchRequest> {
        self.requests().into_iter().filter(|request| request.url.as_str() == url).collect()
    }

    fn reply(&self, request: FetchRequest) -> Result<Reply, FetchError> {
        let reply = (self.respond)(&request);
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        reply.ok_or_else(|| FetchError::network(NetworkFailure::Connect))
    }
}

impl Fetch for FetchFn {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let reply = self.reply(request)?;
            let status = StatusCode::from_u16(reply.status).expect("a status from 100 to 999");
            Ok(FetchResponse { status, headers: reply.headers, body: reply.pieces.concat().into() })
        })
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        Box::pin(async move {
            let reply = self.reply(request)?;
            let status = StatusCode::from_u16(reply.status).expect("a status from 100 to 999");
            let body = Box::new(Pieces(reply.pieces.into_iter()));
            Ok(OpenResponse { status, headers: reply.headers, body })
        })
    }
}

impl fmt::Debug for FetchFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchFn").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

struct Pieces(std::vec::IntoIter<Bytes>);

impl BodyStream for Pieces {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async { self.0.next().map(Ok) })
    }
}
