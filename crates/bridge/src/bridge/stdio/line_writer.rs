//! [`LineSender`] and [`LineWriter`]: a queue of lines, bounded in bytes.

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

/// The way to the client: lines in the order in which they were given, as many bytes waiting as there is capacity for.
#[derive(Clone)]
pub(crate) struct LineSender {
    lines: mpsc::UnboundedSender<Waiting>,
    capacity: Arc<Semaphore>,
    size: u32,
}

/// What a line that waits takes beside its text, so that a flood of short ones is bounded too.
const OVERHEAD: usize = 128;

/// A line, and the capacity that it takes until it is written.
type Waiting = (Bytes, OwnedSemaphorePermit);

/// The client does not read any more.
#[derive(Debug)]
pub(crate) struct Closed;

/// Small lines are written together, up to this much.
const TOGETHER: usize = 64 * 1024;

impl LineSender {
    /// Room for lines of `size` bytes together, each with what holding it takes; a larger one waits until it has all of
    /// it.
    pub(crate) fn new(size: usize) -> (Self, LineWriter) {
        let size = u32::try_from(size).unwrap_or(u32::MAX).max(1);
        let (lines, waiting) = mpsc::unbounded_channel();
        let capacity = Arc::new(Semaphore::new(size as usize));
        (Self { lines, capacity, size }, LineWriter(waiting))
    }

    /// Waits until everything that was given is written.
    pub(crate) async fn flushed(&self) {
        let _ = self.capacity.acquire_many(self.size).await;
    }

    /// Gives a line, once there is capacity for it.
    pub(crate) async fn send(&self, line: Bytes) -> Result<(), Closed> {
        let takes = u32::try_from(line.len().saturating_add(OVERHEAD)).unwrap_or(u32::MAX).min(self.size);
        let capacity = self.capacity.clone().acquire_many_owned(takes).await.map_err(|_| Closed)?;
        self.lines.send((line, capacity)).map_err(|_| Closed)
    }
}

/// Where lines are written from.
pub(crate) struct LineWriter(mpsc::UnboundedReceiver<Waiting>);

impl LineWriter {
    /// Writes lines until nobody can give one any more.
    pub(crate) async fn write(mut self, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut together = Vec::new();
        let mut next = self.0.recv().await;
        while let Some((line, capacity)) = next.take() {
            if line.len() >= TOGETHER {
                // A large line is not copied.
                to.write_all(&line).await?;
                to.write_all(b"\n").await?;
                to.flush().await?;
                drop(capacity);
            } else {
                let mut capacities = vec![capacity];
                together.clear();
                together.extend_from_slice(&line);
                together.push(b'\n');
                while together.len() < TOGETHER
                    && let Ok((line, capacity)) = self.0.try_recv()
                {
                    if line.len() >= TOGETHER {
                        next = Some((line, capacity));
                        break;
                    }
                    together.extend_from_slice(&line);
                    together.push(b'\n');
                    capacities.push(capacity);
                }
                to.write_all(&together).await?;
                to.flush().await?;
            }
            if next.is_none() {
                next = self.0.recv().await;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncReadExt as _, time::timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_waits_and_order_stays() {
        let (output, lines) = LineSender::new(OVERHEAD + 8);
        output.send(Bytes::from_static(b"123456")).await.unwrap();
        let early = timeout(Duration::from_secs(1), output.send(Bytes::from_static(b"abc"))).await;
        assert!(early.is_err(), "there is no capacity");
        let (mut read, write) = tokio::io::duplex(4);
        let writer = tokio::spawn(lines.write(write));
        let reader = tokio::spawn(async move {
            let mut text = String::new();
            read.read_to_string(&mut text).await.unwrap();
            text
        });
        output.send(Bytes::from_static(b"larger than all")).await.unwrap();
        output.send(Bytes::from_static(b"z")).await.unwrap();
        output.flushed().await;
        drop(output);
        let text = reader.await.unwrap();
        assert_eq!(text, "123456\nlarger than all\nz\n");
        writer.await.unwrap().unwrap();
    }

    /// A flood of lines without content waits as one of long lines does.
    #[tokio::test(start_paused = true)]
    async fn short_lines_take_room_too() {
        let (output, _lines) = LineSender::new(OVERHEAD * 100);
        let flood = async {
            let mut given = 0;
            while timeout(Duration::from_secs(1), output.send(Bytes::new())).await.is_ok() {
                given += 1;
            }
            given
        };
        assert_eq!(flood.await, 100);
    }

    /// Small and large lines keep their order.
    #[tokio::test]
    async fn large_lines_are_written_in_turn() {
        let (output, lines) = LineSender::new(10 * TOGETHER);
        let large = Bytes::from(vec![b'x'; 2 * TOGETHER]);
        let given =
            [Bytes::from_static(b"a"), large.clone(), large, Bytes::from_static(b"b"), Bytes::from_static(b"c")];
        for line in &given {
            output.send(line.clone()).await.unwrap();
        }
        drop(output);
        let mut written = Vec::new();
        lines.write(&mut written).await.unwrap();
        let expected: Vec<u8> = given.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        assert!(written == expected);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_is_an_error() {
        let (output, lines) = LineSender::new(8);
        let (read, write) = tokio::io::duplex(4);
        drop(read);
        output.send(Bytes::from_static(b"a")).await.unwrap();
        assert_eq!(lines.write(write).await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(output.send(Bytes::from_static(b"a")).await.is_err());
    }
}
