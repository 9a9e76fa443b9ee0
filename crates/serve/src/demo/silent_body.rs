//! [`SilentBody`]: an event stream without events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame};

/// A body that has neither data nor an end. The endpoint ends the response with the session, the
/// token or the program.
pub(super) struct SilentBody;

impl Body for SilentBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
