//! [`FetchResponse`] and [`OpenResponse`]: responses with a complete body, and with one that is
//! still read.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use portcullis_metadata::syntax::is_event_stream;
use tokio::time::timeout;

use super::{BoxFuture, ResponseExcerpt, SentSecrets, error::FetchError};

/// A complete response. `Debug` prints the status and the length of the body.
#[derive(Clone)]
pub struct FetchResponse {
    /// The status. Redirects are not followed.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as received. Content codings are not decoded.
    pub body: Bytes,
    /// What excerpts of the response must not repeat. A [`Fetch`](crate::Fetch) that records
    /// nothing sets the default.
    pub sent: SentSecrets,
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchResponse")
            .field("status", &self.status)
            .field("body", &self.body.len())
            .finish()
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
    /// As [`FetchResponse::sent`].
    pub sent: SentSecrets,
}

/// How many bytes of a body are read for an excerpt.
const MAX_EXCERPT: usize = 4 * 1024;
/// How long a body is read for an excerpt.
const EXCERPT_TIMEOUT: Duration = Duration::from_secs(1);

impl OpenResponse {
    /// Reads the beginning of the body, for at most 1 s, and returns an excerpt for an error. The
    /// body of an event stream is not read, because it has no end.
    pub async fn excerpt(self) -> ResponseExcerpt {
        let Self {
            headers,
            mut body,
            sent,
            ..
        } = self;
        if is_event_stream(&headers) {
            return ResponseExcerpt::without_body(&headers, &sent);
        }
        let mut read = Vec::new();
        let reading = async {
            while read.len() < MAX_EXCERPT
                && let Some(Ok(chunk)) = body.next().await
            {
                read.extend(chunk.iter().take(MAX_EXCERPT));
            }
        };
        // After the timeout, what has arrived is shown.
        let _ = timeout(EXCERPT_TIMEOUT, reading).await;
        ResponseExcerpt::new(&headers, &read, &sent)
    }
}

impl fmt::Debug for OpenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A body that is read in chunks.
pub trait BodyStream: Send {
    /// Returns the next chunk, or `None` at the end. The boundaries of chunks have no meaning.
    ///
    /// The future can be dropped before it completes without losing a chunk.
    ///
    /// # Errors
    /// Fails if the connection is interrupted. The rest of the body is lost.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>>;
}

/// A body that was read already.
pub(super) struct CompleteBody(Option<Bytes>);

impl CompleteBody {
    /// Returns the body as one chunk.
    pub(super) fn new(body: Bytes) -> Self {
        Self(Some(body))
    }
}

impl BodyStream for CompleteBody {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async { self.0.take().map(Ok) })
    }
}
