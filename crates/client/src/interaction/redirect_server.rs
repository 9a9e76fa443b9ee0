//! A minimal HTTP/1.1 server for the redirect.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::page::page;
use crate::RedirectParameters;

/// The channel to the current sign-in, or to the last one.
pub(super) type CurrentSignIn = Arc<Mutex<Option<mpsc::Sender<ReceivedRedirect>>>>;

/// A redirect that is not validated yet.
pub(super) struct ReceivedRedirect {
    /// The connection of the browser, which waits for a page.
    pub(super) browser: TcpStream,
    pub(super) parameters: RedirectParameters,
}

/// The maximum number of bytes that are read of a request.
const MAX_HEAD: u64 = 16 * 1024;
/// The time limit for a browser to send its request after it connects, and to receive a page.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay before connections are accepted again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The maximum number of connections that are read at once; browsers open some that they never use.
const MAX_CONNECTIONS: usize = 32;

/// Accepts connections, and sends the redirects among their requests to the current sign-in. It never ends.
pub(super) async fn serve(listener: TcpListener, path: Arc<str>, waiting: CurrentSignIn) {
    let mut readers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if readers.len() < MAX_CONNECTIONS => {
                let Ok((stream, _)) = accepted else {
                    // Most often, the process is out of file descriptors; some will be closed.
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                };
                let waiting = waiting.clone();
                let path = path.clone();
                readers.spawn(async move {
                    if let Some(received) = read_redirect(stream, &path).await {
                        deliver(received, &waiting).await;
                    }
                });
            }
            Some(_) = readers.join_next(), if !readers.is_empty() => {}
        }
    }
}

/// Sends a redirect to the current sign-in. If there is none, the browser gets an error page.
async fn deliver(received: ReceivedRedirect, waiting: &CurrentSignIn) {
    let sender = waiting.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let unclaimed = match sender {
        Some(sender) => sender.send(received).await.err().map(|unsent| unsent.0),
        None => Some(received),
    };
    if let Some(ReceivedRedirect { browser, .. }) = unclaimed {
        let text = "No sign-in is in progress. If you have already signed in, you can close this window.";
        respond(browser, page("409 Conflict", "No sign-in in progress", text)).await;
    }
}

/// Reads one request. A request that is not a redirect gets an error page, and the result is None.
async fn read_redirect(mut stream: TcpStream, expected: &str) -> Option<ReceivedRedirect> {
    let head = timeout(BROWSER_TIMEOUT, read_head(&mut stream)).await.ok()??;
    let parsed = target(&head).and_then(|target| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        (path == expected).then(|| RedirectParameters::parse(query))
    });
    match parsed {
        Some(Ok(parameters)) => Some(ReceivedRedirect { browser: stream, parameters }),
        Some(Err(_)) => {
            respond(stream, page("400 Bad Request", "Malformed response", "The response cannot be read.")).await;
            None
        }
        None => {
            respond(stream, page("404 Not Found", "Not found", "Only responses to a sign-in are accepted here.")).await;
            None
        }
    }
}

/// Reads the head of a request. `None` if the connection ends before it is complete, or it is too large.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut stream = stream.take(MAX_HEAD);
    let mut head = Vec::with_capacity(1024);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// The target of a GET request's first line.
fn target(head: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    line.strip_prefix("GET ")?.split_once(' ').map(|(target, _)| target)
}

/// Sends the browser a page and closes the connection. It waits at most [`BROWSER_TIMEOUT`].
pub(super) async fn respond(mut stream: TcpStream, response: String) {
    // The browser may have closed the connection.
    let _ = timeout(BROWSER_TIMEOUT, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An endless request is cut off; one with many cookies is read.
    #[tokio::test]
    async fn a_head_is_bounded() {
        const END: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
        let most = usize::try_from(MAX_HEAD).unwrap() - END.len();
        for (before, read) in [(0, true), (most, true), (most + 1, false), (32 * 1024, false)] {
            let head = ["a".repeat(before).as_bytes(), END].concat();
            let (mut near, mut far) = tokio::io::duplex(64 * 1024);
            far.write_all(&head).await.unwrap();
            assert_eq!(read_head(&mut near).await, read.then_some(head));
        }
    }
}
