//! [`NonBlocking`]: the non-blocking mode of open files, which ends with the streams that need it.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Open files in non-blocking mode. Dropping it restores their former modes.
///
/// The mode belongs to the open file description. All file descriptors that were duplicated from
/// the same one share it, also those of other processes.
#[derive(Default)]
pub(super) struct NonBlocking {
    /// The files that were blocking, with their flags.
    changed: Vec<(OwnedFd, OFlags)>,
}

impl NonBlocking {
    /// Sets the mode of a file. Returns `false`, and leaves it as it is, if `other` has the same
    /// file description. `other` may be closed. Fails when the mode cannot be read or set.
    pub(super) fn set(&mut self, file: impl AsFd, other: impl AsFd) -> io::Result<bool> {
        let before = fcntl_getfl(&file)?;
        if before.contains(OFlags::NONBLOCK) {
            return Ok(true);
        }
        // A closed `other` shares nothing.
        let is_other_blocking =
            || fcntl_getfl(&other).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        let was_blocking = is_other_blocking();
        // All that can fail is done before the mode changes.
        let kept = file.as_fd().try_clone_to_owned()?;
        fcntl_setfl(&file, before | OFlags::NONBLOCK)?;
        // There is no portable way to compare descriptions, but the mode of a shared one changes
        // for both.
        let is_shared = was_blocking && !is_other_blocking();
        if is_shared {
            fcntl_setfl(&file, before)?;
            return Ok(false);
        }
        self.changed.push((kept, before));
        Ok(true)
    }
}

impl Drop for NonBlocking {
    fn drop(&mut self) {
        for (file, flags) in &self.changed {
            // A file whose mode was set once can be set again, and there is nothing to do if not.
            let _ = fcntl_setfl(file, *flags);
        }
    }
}

/// A stream that is registered with the runtime. It keeps the mode of all streams that were opened
/// with it.
pub(super) struct Registered<S> {
    // Dropped first.
    stream: S,
    _mode: Arc<NonBlocking>,
}

impl<S> Registered<S> {
    pub(super) fn new(stream: S, mode: &Arc<NonBlocking>) -> Self {
        Self {
            stream,
            _mode: Arc::clone(mode),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Registered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Registered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
