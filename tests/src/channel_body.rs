//! [`ChannelBody`]: a response body whose chunks a test sends.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

/// A body whose chunks a test sends. It ends when its sender is dropped.
pub struct ChannelBody(mpsc::UnboundedReceiver<Bytes>);

impl ChannelBody {
    /// Returns a body and its sender.
    pub fn new() -> (mpsc::UnboundedSender<Bytes>, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (sender, Self(receiver))
    }
}

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}
