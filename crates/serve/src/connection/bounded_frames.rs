//! A body that passes large frames on in pieces.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// The maximum size of a data frame in bytes.
pub(super) const MAX_FRAME: usize = 16 << 10;

pin_project! {
    /// The frames of a body, with larger data frames split into frames of at most [`MAX_FRAME`]
    /// bytes.
    #[derive(Debug)]
    pub(super) struct BoundedFrames<B> {
        #[pin]
        body: B,
        // The part of the last data frame that has not been yielded.
        remainder: Bytes,
    }
}

impl<B> BoundedFrames<B> {
    pub(super) fn new(body: B) -> Self {
        Self {
            body,
            remainder: Bytes::new(),
        }
    }
}

impl<B: Body<Data = Bytes>> Body for BoundedFrames<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if this.remainder.is_empty() {
            let frame = match ready!(this.body.poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => *this.remainder = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let length = this.remainder.len().min(MAX_FRAME);
        Poll::Ready(Some(Ok(Frame::data(this.remainder.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.remainder.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.size_hint();
        let remainder = self.remainder.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(remainder));
        if let Some(upper) = body.upper().and_then(|upper| upper.checked_add(remainder)) {
            hint.set_upper(upper);
        }
        hint
    }
}
