//! The few lines of HTTP that a redirect needs.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    loopback_redirect::{Arrived, Waiting},
    page::page,
};
use crate::RedirectParameters;

const MAX_HEAD: usize = 16 * 1024;
/// How long a browser may take to send its request once it is connected.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How many connections are read at once; browsers open some that they never use.
const MAX_CONNECTIONS: usize = 32;

/// Reads what comes, and hands answers to whoever waits.
pub(super) async fn serve(listener: TcpListener, path: Arc<str>, waiting: Waiting) {
    let mut readers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if readers.len() < MAX_CONNECTIONS => {
                let Ok((stream, _)) = accepted else {
                    // Out of file descriptors, most often: some become free.
                    sleep(ACCEPT_AGAIN).await;
                    continue;
                };
                let (waiting, path) = (waiting.clone(), path.clone());
                readers.spawn(async move {
                    if let Some(arrived) = read_redirect(stream, &path).await {
                        hand_over(arrived, &waiting).await;
                    }
                });
            }
            Some(_) = readers.join_next(), if !readers.is_empty() => {}
        }
    }
}

async fn hand_over(arrived: Arrived, waiting: &Waiting) {
    let sender = waiting.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let unclaimed = match sender {
        Some(sender) => sender.send(arrived).await.err().map(|unsent| unsent.0),
        None => Some(arrived),
    };
    if let Some((stream, _)) = unclaimed {
        let text = "No sign-in is under way. If you have signed in already, you can close this window.";
        respond(stream, page("409 Conflict", "No answer is waited for", text)).await;
    }
}

/// Reads one request. What is no redirect is answered here and gives nothing.
async fn read_redirect(mut stream: TcpStream, expected: &str) -> Option<Arrived> {
    let head = timeout(HEAD_LIMIT, read_head(&mut stream)).await.ok()??;
    let parsed = target(&head).and_then(|target| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        (path == expected).then(|| RedirectParameters::parse(query))
    });
    match parsed {
        Some(Ok(parameters)) => Some((stream, parameters)),
        Some(Err(_)) => {
            respond(stream, page("400 Bad Request", "Malformed answer", "The answer cannot be read.")).await;
            None
        }
        None => {
            respond(stream, page("404 Not Found", "Nothing here", "Only the answer to a sign-in is read here.")).await;
            None
        }
    }
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() >= MAX_HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
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

pub(super) async fn respond(mut stream: TcpStream, response: String) {
    // A browser that has gone needs no page.
    let _ = timeout(HEAD_LIMIT, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request without end is not read without end; one with many cookies is read.
    #[tokio::test]
    async fn a_head_is_bounded() {
        for (before, read) in [(0, true), (15 * 1024, true), (32 * 1024, false)] {
            let head = ["a".repeat(before).as_bytes(), b"GET / HTTP/1.1\r\n\r\n"].concat();
            let (mut near, mut far) = tokio::io::duplex(64 * 1024);
            far.write_all(&head).await.unwrap();
            assert_eq!(read_head(&mut near).await, read.then_some(head));
        }
    }
}
