//! Lingering close: a client that is still sending can read the response before the socket closes.
//!
//! The kernel resets a socket that is closed with unread bytes, and the reset discards the response
//! that the client has not read yet. Therefore the write side is shut down first, and incoming
//! bytes are read and discarded for a limited time.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The maximum number of bytes that are read and discarded.
const MAX_BYTES: usize = 8 << 20;
/// The time within which the client must stop sending.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Whether bytes arrived that are not part of a request whose head and body were read to their end.
/// A connection and its requests share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnreadBytes(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    unread: AtomicBool,
    abandoned: AtomicBool,
    multiplexed: AtomicBool,
}

impl UnreadBytes {
    pub(crate) fn set(&self, unread: bool) {
        self.0.unread.store(unread, Ordering::Relaxed);
    }

    /// Notes whether the body of the current request was dropped before its end.
    pub(crate) fn set_abandoned(&self, abandoned: bool) {
        self.0.abandoned.store(abandoned, Ordering::Relaxed);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.abandoned.load(Ordering::Relaxed)
    }

    /// Marks the connection as multiplexed (HTTP/2), which closes without lingering.
    pub(crate) fn ignore(&self) {
        self.0.multiplexed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_multiplexed(&self) -> bool {
        self.0.multiplexed.load(Ordering::Relaxed)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.unread.load(Ordering::Relaxed) && !self.is_multiplexed()
    }
}

pin_project! {
    /// A socket that lingers on close when the last request was not read to its end.
    pub(crate) struct LingeringClose<T> {
        #[pin]
        socket: T,
        unread: UnreadBytes,
        lingering: Option<Lingering>,
    }
}

struct Lingering {
    discarded: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<T> LingeringClose<T> {
    pub(crate) fn new(socket: T, unread: UnreadBytes) -> Self {
        Self {
            socket,
            unread,
            lingering: None,
        }
    }
}

impl<T: AsyncRead> AsyncRead for LingeringClose<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buf.filled().len();
        ready!(this.socket.poll_read(cx, buf))?;
        if buf.filled().len() > before {
            // A head that cannot be parsed never becomes a request that could set this.
            this.unread.set(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite> AsyncWrite for LingeringClose<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().socket.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().socket.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().socket.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        if this.lingering.is_none() {
            ready!(this.socket.as_mut().poll_shutdown(cx))?;
            if !this.unread.is_set() {
                return Poll::Ready(Ok(()));
            }
            *this.lingering = Some(Lingering {
                discarded: 0,
                deadline: Box::pin(sleep(MAX_TIME)),
            });
        }
        match this.lingering {
            Some(lingering) => lingering.poll(this.socket, cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl Lingering {
    fn poll<T: AsyncRead>(
        &mut self,
        mut socket: Pin<&mut T>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut space = [0; 16 << 10];
        while self.discarded < MAX_BYTES && self.deadline.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut space);
            match ready!(socket.as_mut().poll_read(cx, &mut buf)) {
                Ok(()) if buf.filled().is_empty() => break,
                Ok(()) => self.discarded += buf.filled().len(),
                Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    fn unread(set: bool) -> UnreadBytes {
        let unread = UnreadBytes::default();
        unread.set(set);
        unread
    }

    /// B8: bytes that a client still sends are read and discarded until it stops.
    #[tokio::test]
    async fn remaining_bytes_are_discarded() {
        let (mut client, server) = duplex(1 << 10);
        let mut server = LingeringClose::new(server, unread(true));
        let (closed, sent) = tokio::join!(server.shutdown(), async {
            client.write_all(&[0; 64 << 10]).await.unwrap();
            client.shutdown().await
        });
        assert!(closed.is_ok());
        assert!(sent.is_ok());
        assert_eq!(
            client.read(&mut [0]).await.unwrap(),
            0,
            "the write side is shut"
        );
    }

    /// B8: a client that does not stop is disconnected after a number of bytes.
    #[tokio::test(start_paused = true)]
    async fn the_number_of_bytes_is_bounded() {
        let (mut client, server) = duplex(64 << 10);
        let mut server = LingeringClose::new(server, unread(true));
        let endless = async {
            let mut sent = 0;
            while client.write_all(&[0; 64 << 10]).await.is_ok() {
                sent += 64 << 10;
            }
            sent
        };
        let close = async {
            server.shutdown().await.unwrap();
            drop(server);
        };
        let ((), sent) = tokio::join!(close, endless);
        assert!((MAX_BYTES..MAX_BYTES + (1 << 20)).contains(&sent), "{sent}");
    }

    /// B8: a client that sends nothing and does not close the connection is disconnected after a
    /// time.
    #[tokio::test(start_paused = true)]
    async fn the_time_is_bounded() {
        let (_client, server) = duplex(1 << 10);
        let started = tokio::time::Instant::now();
        LingeringClose::new(server, unread(true))
            .shutdown()
            .await
            .unwrap();
        assert_eq!(started.elapsed().as_secs(), MAX_TIME.as_secs());
    }

    /// B8: bytes that are not part of a request, such as a malformed head, count as unread.
    #[tokio::test]
    async fn bytes_are_unread_until_they_belong_to_a_request() {
        let (mut client, server) = duplex(1 << 10);
        let unread = UnreadBytes::default();
        let mut server = LingeringClose::new(server, unread.clone());
        client.write_all(b"no HTTP").await.unwrap();
        assert_eq!(server.read(&mut [0; 16]).await.unwrap(), 7);
        assert!(unread.is_set());
        unread.ignore();
        assert!(!unread.is_set(), "HTTP/2 closes without lingering");
    }

    #[tokio::test(start_paused = true)]
    async fn closes_at_once_when_everything_was_read() {
        let (_client, server) = duplex(1 << 10);
        let started = tokio::time::Instant::now();
        LingeringClose::new(server, unread(false))
            .shutdown()
            .await
            .unwrap();
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
