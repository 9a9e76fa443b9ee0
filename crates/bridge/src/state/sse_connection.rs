//! [`SseConnection`]: an open connection of HTTP with SSE (MCP 2024-11-05).

use tokio::{sync::watch, task::JoinHandle};
use url::Url;

/// A connection to a server of 2024-11-05: the stream that carries all messages of the server, and
/// the URL for the client's messages. Dropping it closes the stream.
pub(crate) struct SseConnection {
    message_url: Url,
    lost: watch::Receiver<bool>,
    reader: JoinHandle<()>,
}

impl SseConnection {
    /// `lost` becomes true when the stream ends; `reader` is the task that reads the stream.
    pub(crate) fn new(
        message_url: Url,
        lost: watch::Receiver<bool>,
        reader: JoinHandle<()>,
    ) -> Self {
        Self {
            message_url,
            lost,
            reader,
        }
    }

    /// The URL for the client's messages.
    pub(crate) fn message_url(&self) -> &Url {
        &self.message_url
    }

    /// Whether the stream has ended.
    pub(crate) fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Waits until the stream has ended.
    pub(crate) async fn lost(&self) {
        let _ = self.lost.clone().wait_for(|lost| *lost).await;
    }
}

impl Drop for SseConnection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
