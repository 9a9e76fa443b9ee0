//! [`UpstreamBody`]: the body of a response.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::{
    connection::{Connection, Pool},
    error::UpstreamBodyError,
};

/// The body of a response from an [`HttpUpstream`](crate::HttpUpstream). Data is streamed; trailers
/// are discarded.
///
/// Polling the body reads from the upstream. At its end the connection returns to the pool.
/// Dropping the body earlier closes the connection.
pub struct UpstreamBody(Source);

/// Where the data comes from.
enum Source {
    /// From memory: the rest of a complete body, or nothing after the end.
    Complete(Bytes),
    /// From a connection, which returns to the pool at the end.
    Streamed(Connection, Arc<Pool>),
}

impl UpstreamBody {
    /// Creates a body of these bytes.
    pub(crate) fn complete(bytes: Bytes) -> Self {
        Self(Source::Complete(bytes))
    }

    /// Returns the body of the response whose head was received over `connection`.
    pub(crate) fn over(mut connection: Connection, pool: &Arc<Pool>) -> Self {
        match connection.take_complete_body() {
            None => Self(Source::Streamed(connection, Arc::clone(pool))),
            Some(bytes) => {
                pool.put(connection);
                Self::complete(bytes)
            }
        }
    }

    /// Returns the connection to the pool, or closes it if it is not reusable.
    fn release_connection(&mut self) {
        if let Source::Streamed(connection, pool) =
            std::mem::replace(&mut self.0, Source::Complete(Bytes::new()))
        {
            pool.put(connection);
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamBodyError>>> {
        let this = self.get_mut();
        let connection = match &mut this.0 {
            Source::Complete(bytes) if bytes.is_empty() => return Poll::Ready(None),
            Source::Complete(bytes) => {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes)))));
            }
            Source::Streamed(connection, _) => connection,
        };
        let data = ready!(connection.poll_data(cx));
        if connection.remaining_body() == Some(0) || !matches!(data, Some(Ok(_))) {
            this.release_connection();
        }
        Poll::Ready(data.map(|data| {
            data.map(Frame::data)
                .map_err(|error| UpstreamBodyError::Broken(error.into()))
        }))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Complete(bytes) => bytes.is_empty(),
            Source::Streamed(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Streamed(connection, _) => connection
                .remaining_body()
                .map(SizeHint::with_exact)
                .unwrap_or_default(),
        }
    }
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamBody")
            .field("size_hint", &self.size_hint())
            .finish_non_exhaustive()
    }
}
