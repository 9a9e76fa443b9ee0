//! [`AdmittedBody`]: the body of an admitted request.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of an admitted request: exactly the checked bytes. Empty for GET and DELETE.
#[derive(Clone, Debug, Default)]
pub struct AdmittedBody(Bytes);

impl AdmittedBody {
    /// Returns a body of these bytes, which were checked.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl Body for AdmittedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = std::mem::take(&mut self.0);
        Poll::Ready(if data.is_empty() {
            None
        } else {
            Some(Ok(Frame::data(data)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}
