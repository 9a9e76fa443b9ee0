//! [`FetchResponse`] and [`OpenResponse`].

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::{BoxFuture, error::FetchError};

/// A complete response. `Debug` prints the status and the length of the body.
#[derive(Clone)]
pub struct FetchResponse {
    /// The status. Redirects are not followed.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as received. Content codings are not decoded.
    pub body: Bytes,
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchResponse").field("status", &self.status).field("body", &self.body.len()).finish()
    }
}

/// A response whose body is not read yet.
pub struct OpenResponse {
    /// The status. Redirects are not followed.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. Dropping it cancels the response.
    pub body: Box<dyn BodyStream>,
}

impl fmt::Debug for OpenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A body that is read in chunks.
pub trait BodyStream: Send {
    /// Returns the next chunk, or `None` at the end. The boundaries of chunks have no meaning.
    ///
    /// The future can be dropped before it completes without losing a chunk.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>>;
}

/// A body that was read already.
pub(super) struct CompleteBody(Option<Bytes>);

impl CompleteBody {
    pub(super) fn new(body: Bytes) -> Self {
        Self(Some(body))
    }
}

impl BodyStream for CompleteBody {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async { self.0.take().map(Ok) })
    }
}
