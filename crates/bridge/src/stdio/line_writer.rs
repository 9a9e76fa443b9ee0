//! [`LineSender`] and [`LineWriter`]: a queue of lines, bounded in bytes.

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

/// Sends lines to the client, in order. The queue is limited in bytes.
#[derive(Clone)]
pub(crate) struct LineSender {
    lines: mpsc::UnboundedSender<QueuedLine>,
    capacity: Arc<Semaphore>,
    /// The whole capacity, in bytes.
    total: u32,
}

/// The receiving end of the queue.
pub(crate) struct LineWriter {
    queue: mpsc::UnboundedReceiver<QueuedLine>,
    /// A large line that was received while small ones were collected.
    held_back: Option<QueuedLine>,
}

/// A line that is not written yet.
struct QueuedLine {
    text: Bytes,
    /// Its share of the capacity, held until it is written.
    capacity: OwnedSemaphorePermit,
}

/// The client has closed the output.
#[derive(Debug)]
pub(crate) struct Closed;

/// What a waiting line takes in addition to its text, in bytes, so that many short lines are
/// limited too.
const LINE_OVERHEAD: usize = 128;
/// The size up to which small lines are written together, in bytes.
const MAX_BATCH: usize = 64 * 1024;

impl LineSender {
    /// Creates a queue for `size` bytes, including the overhead of each line. A larger line waits
    /// until the queue is empty.
    pub(crate) fn new(size: usize) -> (Self, LineWriter) {
        let total = u32::try_from(size).unwrap_or(u32::MAX).max(1);
        let (lines, queue) = mpsc::unbounded_channel();
        let capacity = Arc::new(Semaphore::new(total as usize));
        (
            Self {
                lines,
                capacity,
                total,
            },
            LineWriter {
                queue,
                held_back: None,
            },
        )
    }

    /// Waits until all lines are written or, if the client has closed the output, dropped.
    pub(crate) async fn flushed(&self) {
        let _ = self.capacity.acquire_many(self.total).await;
    }

    /// Queues a line when there is capacity for it. It must not contain a line break. Fails when
    /// the client has closed the output.
    pub(crate) async fn send(&self, text: Bytes) -> Result<(), Closed> {
        let size = u32::try_from(text.len().saturating_add(LINE_OVERHEAD))
            .unwrap_or(u32::MAX)
            .min(self.total);
        let capacity = self
            .capacity
            .clone()
            .acquire_many_owned(size)
            .await
            .map_err(|_| Closed)?;
        self.lines
            .send(QueuedLine { text, capacity })
            .map_err(|_| Closed)
    }
}

impl LineWriter {
    /// Writes lines until all senders are dropped. Fails when writing fails, for example because
    /// the client has closed the output. The queue is then closed, too.
    pub(crate) async fn write(mut self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut batch = Vec::new();
        while let Some(line) = self.next().await {
            if line.is_large() {
                // It is not copied.
                output.write_all(&line.text).await?;
                output.write_all(b"\n").await?;
                output.flush().await?;
                continue;
            }
            batch.clear();
            let mut capacities = Vec::new();
            let mut next = Some(line);
            while let Some(QueuedLine { text, capacity }) = next {
                batch.extend_from_slice(&text);
                batch.push(b'\n');
                capacities.push(capacity);
                next = if batch.len() < MAX_BATCH {
                    self.next_small()
                } else {
                    None
                };
            }
            output.write_all(&batch).await?;
            output.flush().await?;
        }
        Ok(())
    }

    /// Waits for the next line. Returns `None` when all senders are dropped.
    async fn next(&mut self) -> Option<QueuedLine> {
        match self.held_back.take() {
            Some(line) => Some(line),
            None => self.queue.recv().await,
        }
    }

    /// Returns the next line if it is already in the queue and small.
    fn next_small(&mut self) -> Option<QueuedLine> {
        let line = self.queue.try_recv().ok()?;
        if line.is_large() {
            self.held_back = Some(line);
            return None;
        }
        Some(line)
    }
}

impl QueuedLine {
    /// Whether it is written on its own.
    fn is_large(&self) -> bool {
        self.text.len() >= MAX_BATCH
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncReadExt as _, time::timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_waits_and_order_stays() {
        let (output, lines) = LineSender::new(LINE_OVERHEAD + 8);
        output.send(Bytes::from_static(b"123456")).await.unwrap();
        let early = timeout(
            Duration::from_secs(1),
            output.send(Bytes::from_static(b"abc")),
        )
        .await;
        assert!(early.is_err(), "there is no capacity");

        let (mut read, write) = tokio::io::duplex(4);
        let writer = tokio::spawn(lines.write(write));
        let reader = tokio::spawn(async move {
            let mut text = String::new();
            read.read_to_string(&mut text).await.unwrap();
            text
        });
        output
            .send(Bytes::from_static(b"larger than all"))
            .await
            .unwrap();
        output.send(Bytes::from_static(b"z")).await.unwrap();
        output.flushed().await;
        drop(output);
        let text = reader.await.unwrap();
        assert_eq!(text, "123456\nlarger than all\nz\n");
        writer.await.unwrap().unwrap();
    }

    /// Many empty lines wait as long lines do.
    #[tokio::test(start_paused = true)]
    async fn short_lines_count_their_overhead() {
        let (output, _lines) = LineSender::new(LINE_OVERHEAD * 100);
        let flood = async {
            let mut given = 0;
            while timeout(Duration::from_secs(1), output.send(Bytes::new()))
                .await
                .is_ok()
            {
                given += 1;
            }
            given
        };
        assert_eq!(flood.await, 100);
    }

    /// Small and large lines keep their order.
    #[tokio::test]
    async fn large_lines_are_written_in_turn() {
        let (output, lines) = LineSender::new(10 * MAX_BATCH);
        let large = Bytes::from(vec![b'x'; 2 * MAX_BATCH]);
        let given = [
            Bytes::from_static(b"a"),
            large.clone(),
            large,
            Bytes::from_static(b"b"),
            Bytes::from_static(b"c"),
        ];
        for line in &given {
            output.send(line.clone()).await.unwrap();
        }
        drop(output);
        let mut written = Vec::new();
        lines.write(&mut written).await.unwrap();
        let expected: Vec<u8> = given
            .iter()
            .flat_map(|line| [line, &b"\n"[..]].concat())
            .collect();
        assert!(written == expected);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_is_an_error() {
        let (output, lines) = LineSender::new(8);
        let (read, write) = tokio::io::duplex(4);
        drop(read);
        output.send(Bytes::from_static(b"a")).await.unwrap();
        assert_eq!(
            lines.write(write).await.unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
        assert!(output.send(Bytes::from_static(b"a")).await.is_err());
    }
}
