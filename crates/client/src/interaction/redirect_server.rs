//! A minimal HTTP/1.1 server for the one-time address of a sign-in and for the redirect.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_metadata::Secret;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{page::page, peer_user::is_of_other_user};
use crate::RedirectParameters;

/// The state that the server shares with the sign-ins.
#[derive(Default)]
pub(super) struct SignInState {
    /// The channel to the current sign-in, or to the last one.
    pub(super) current: Mutex<Option<mpsc::Sender<BrowserRequest>>>,
    /// How a user signs out.
    pub(super) sign_out: OnceLock<String>,
}

/// A request for the current sign-in, which is not validated yet.
pub(super) struct BrowserRequest {
    /// The connection of the browser, which waits for a page.
    pub(super) browser: TcpStream,
    pub(super) content: Content,
}

/// What a browser requested.
pub(super) enum Content {
    /// The one-time address with this name.
    OneTime(Secret),
    /// The redirect URI.
    Redirect(RedirectParameters),
}

/// The path of the one-time addresses, before their random names.
pub(super) const ONE_TIME: &str = "/sign-in/";
/// The maximum number of bytes that are read of a request.
const MAX_HEAD: u64 = 16 * 1024;
/// The time limit for a browser to send its request after it connects.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for a browser to receive a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay before connections are accepted again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The maximum number of connections that are read at once; browsers open some that they never use.
/// A further one replaces the oldest, so that silent connections of others do not keep the browser
/// out.
const MAX_UNREAD: usize = 32;
/// The maximum number of requests that are answered at once. Further ones are dropped.
const MAX_ANSWERS: usize = 32;

/// Accepts connections, and sends the requests for the current sign-in to it. It never ends.
pub(super) async fn serve(listener: TcpListener, redirect_path: Arc<str>, state: Arc<SignInState>) {
    let mut readers = JoinSet::new();
    // The readers in the order of their connections.
    let mut unread: VecDeque<AbortHandle> = VecDeque::new();
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Most often, the process is out of file descriptors; some will be closed.
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                };
                if unread.len() >= MAX_UNREAD && let Some(oldest) = unread.pop_front() {
                    oldest.abort();
                }
                unread.push_back(readers.spawn(read_request(stream)));
            }
            Some(read) = readers.join_next_with_id() => {
                let id = read.as_ref().map_or_else(tokio::task::JoinError::id, |(id, _)| *id);
                unread.retain(|reader| reader.id() != id);
                if let Ok((_, Some(request))) = read && answers.len() < MAX_ANSWERS {
                    answers.spawn(answer(request, redirect_path.clone(), state.clone()));
                }
            }
            Some(_) = answers.join_next() => {}
        }
    }
}

/// A request whose head was read.
struct ReceivedRequest {
    browser: TcpStream,
    head: Vec<u8>,
}

/// Reads one request. `None` if it does not arrive in time.
async fn read_request(mut browser: TcpStream) -> Option<ReceivedRequest> {
    let head = timeout(HEAD_TIMEOUT, read_head(&mut browser))
        .await
        .ok()??;
    Some(ReceivedRequest { browser, head })
}

/// Sends a request to the current sign-in. If there is none, or the request is another one, the
/// browser gets an error page.
async fn answer(received: ReceivedRequest, redirect_path: Arc<str>, state: Arc<SignInState>) {
    let ReceivedRequest { browser, head } = received;
    let content = match content(&head, &redirect_path) {
        // Another user could bring a redirect of their own account.
        Ok(_) if is_of_other_user(&browser) => {
            Err(page("403 Forbidden", "Another user", OTHER_USER))
        }
        content => content,
    };
    match content {
        Ok(content) => deliver(BrowserRequest { browser, content }, &state).await,
        Err(page) => respond(browser, page).await,
    }
}

const OTHER_USER: &str = "Another user of this machine has started this sign-in.";

/// What a request is for. The error is the page for any other request.
fn content(head: &[u8], redirect_path: &str) -> Result<Content, String> {
    let not_found = || {
        page(
            "404 Not Found",
            "Not found",
            "Only responses to a sign-in are accepted here.",
        )
    };
    let (path, query) = target(head)
        .map(|it| it.split_once('?').unwrap_or((it, "")))
        .ok_or_else(not_found)?;
    if path == redirect_path {
        let malformed = |_| {
            page(
                "400 Bad Request",
                "Malformed response",
                "The response cannot be read.",
            )
        };
        return RedirectParameters::parse(query)
            .map(Content::Redirect)
            .map_err(malformed);
    }
    let name = path.strip_prefix(ONE_TIME).ok_or_else(not_found)?;
    // A browser that loads a page in advance can load it again when it shows the page.
    if is_prefetch(head) {
        return Err(page(
            "503 Service Unavailable",
            "Not yet",
            "This address cannot be loaded in advance.",
        ));
    }
    Ok(Content::OneTime(Secret::new(name)))
}

/// Sends a request to the current sign-in. If there is none, the browser gets an error page.
async fn deliver(request: BrowserRequest, state: &SignInState) {
    let sender = state.current.lock().clone();
    let unclaimed = match sender {
        Some(sender) => sender.send(request).await.err().map(|unsent| unsent.0),
        None => Some(request),
    };
    if let Some(BrowserRequest { browser, content }) = unclaimed {
        let text = match content {
            Content::Redirect(_) => {
                "No sign-in is in progress. If you have already signed in, you can close this window.".to_owned()
            }
            Content::OneTime(_) => format!(
                "This sign-in has ended. If you did not complete it yourself, another user of this machine may have: {}, \
                 then sign in again.",
                state.sign_out.get().map_or("sign out of this server", String::as_str)
            ),
        };
        respond(
            browser,
            page("409 Conflict", "No sign-in in progress", &text),
        )
        .await;
    }
}

/// Reads the head of a request. `None` if the connection ends before it is complete, or it is too
/// large.
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
    line.strip_prefix("GET ")?
        .split_once(' ')
        .map(|(target, _)| target)
}

/// Whether a browser loads the page in advance.
fn is_prefetch(head: &[u8]) -> bool {
    let lines = head
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| std::str::from_utf8(line).ok());
    lines
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| {
            let is_purpose = ["sec-purpose", "purpose", "x-moz"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known));
            is_purpose
                && value
                    .trim_start()
                    .get(..8)
                    .is_some_and(|value| value.eq_ignore_ascii_case("prefetch"))
        })
}

/// Sends the browser a page and closes the connection. It waits at most [`PAGE_TIMEOUT`].
pub(super) async fn respond(mut stream: TcpStream, response: String) {
    // The browser may have closed the connection.
    let _ = timeout(PAGE_TIMEOUT, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I3: a page that is loaded in advance does not use up its address.
    #[test]
    fn a_page_loaded_in_advance_is_recognized() {
        let request = |line: &str| {
            content(
                format!("GET /sign-in/a HTTP/1.1\r\n{line}\r\n\r\n").as_bytes(),
                "/callback",
            )
        };
        for line in [
            "Sec-Purpose: prefetch;prerender",
            "purpose:prefetch",
            "X-Moz: Prefetch",
        ] {
            assert!(
                request(line).is_err_and(|page| page.contains("503")),
                "{line}"
            );
        }
        for line in ["Host: 127.0.0.1", "Sec-Purpose: other", "Cookie: prefetch"] {
            assert!(
                matches!(request(line), Ok(Content::OneTime(name)) if name.secret() == "a"),
                "{line}"
            );
        }
    }

    /// An endless request is cut off; one with many cookies is read.
    #[tokio::test]
    async fn a_head_is_bounded() {
        const END: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
        let most = usize::try_from(MAX_HEAD).unwrap() - END.len();
        for (before, read) in [
            (0, true),
            (most, true),
            (most + 1, false),
            (32 * 1024, false),
        ] {
            let head = ["a".repeat(before).as_bytes(), END].concat();
            let (mut near, mut far) = tokio::io::duplex(64 * 1024);
            far.write_all(&head).await.unwrap();
            assert_eq!(read_head(&mut near).await, read.then_some(head));
        }
    }
}
