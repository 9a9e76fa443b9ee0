use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::{UpstreamBodyError, link::Link, pool::Pool};

/// The body of an [`HttpUpstream`](crate::HttpUpstream)'s answer, handed on piece by piece as it comes; trailers are
/// left out.
///
/// Reading it is what reads from the upstream's connection. Read to its end, it gives the connection back;
/// dropped earlier, it closes it.
pub struct UpstreamBody(Kind);

enum Kind {
    Whole(Bytes),
    /// More is to come over a connection, which then goes back to its pool.
    Streamed(Box<Link>, Arc<Pool>),
}

impl UpstreamBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }

    /// The body of an answer whose head came over `link`.
    pub(crate) fn over(mut link: Box<Link>, pool: &Arc<Pool>) -> Self {
        match link.take_whole() {
            None => Self(Kind::Streamed(link, Arc::clone(pool))),
            Some(bytes) => {
                if link.is_idle() {
                    pool.put(link);
                }
                Self::whole(bytes)
            }
        }
    }

    /// Gives the connection back, or closes it when it is of no further use.
    fn end(&mut self) {
        if let Kind::Streamed(link, pool) = std::mem::replace(&mut self.0, Kind::Whole(Bytes::new()))
            && link.is_idle()
        {
            pool.put(link);
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UpstreamBodyError>>> {
        let this = self.get_mut();
        let link = match &mut this.0 {
            Kind::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            Kind::Whole(bytes) => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Streamed(link, _) => link,
        };
        let data = ready!(link.poll_data(cx));
        if link.length() == Some(0) || !matches!(data, Some(Ok(_))) {
            this.end();
        }
        let frame = data.map(|data| data.map(Frame::data).map_err(|broken| UpstreamBodyError::Broken(broken.into())));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Streamed(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Streamed(link, _) => link.length().map(SizeHint::with_exact).unwrap_or_default(),
        }
    }
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamBody").field("size_hint", &self.size_hint()).finish_non_exhaustive()
    }
}
