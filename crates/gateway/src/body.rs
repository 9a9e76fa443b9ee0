use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::{UpstreamBodyError, link::Link, pool::Pool};

/// The body of an [`HttpUpstream`](crate::HttpUpstream)'s answer, handed on piece by piece as it comes; trailers are
/// left out.
///
/// Reading it is what reads from the upstream's connection. Read to its end, it gives the connection back;
/// dropped earlier, it closes it.
pub struct UpstreamBody(Kind);

enum Kind {
    Whole(Bytes),
    Streamed {
        incoming: Incoming,
        /// The connection and where it goes back to, until it has delivered the whole body.
        source: Option<(Box<Link>, Arc<Pool>)>,
    },
}

impl UpstreamBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }

    /// The body of an answer whose head came over `link`.
    pub(crate) fn streamed(incoming: Incoming, link: Box<Link>, pool: Arc<Pool>) -> Self {
        let mut body = Self(Kind::Streamed { incoming, source: Some((link, pool)) });
        body.give_back_if_idle();
        body
    }

    /// Gives the connection back as soon as it has delivered everything: what was not read yet is in memory then.
    fn give_back_if_idle(&mut self) {
        if let Kind::Streamed { source, .. } = &mut self.0
            && let Some((link, pool)) = source.take_if(|(link, _)| link.is_idle())
        {
            pool.put(link);
        }
    }

    /// Closes the connection where it was not given back: it is of no further use.
    fn close(&mut self) {
        if let Kind::Streamed { source, .. } = &mut self.0 {
            *source = None;
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UpstreamBodyError>>> {
        let this = self.get_mut();
        let frame = match &mut this.0 {
            Kind::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            Kind::Whole(bytes) => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Streamed { incoming, source: Some((link, _)) } => ready!(link.poll_frame(incoming, cx)),
            Kind::Streamed { incoming, source: None } => ready!(Pin::new(incoming).poll_frame(cx)),
        };
        this.give_back_if_idle();
        match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => Poll::Ready(Some(Ok(Frame::data(data)))),
            // Trailers are the last frame.
            Some(Ok(Err(_))) | None => {
                this.close();
                Poll::Ready(None)
            }
            Some(Err(error)) => {
                this.close();
                Poll::Ready(Some(Err(UpstreamBodyError::Broken(error.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Streamed { incoming, .. } => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Streamed { incoming, .. } => incoming.size_hint(),
        }
    }
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamBody").field("size_hint", &self.size_hint()).finish_non_exhaustive()
    }
}
