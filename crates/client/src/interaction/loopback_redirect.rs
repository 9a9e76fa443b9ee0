use std::{fmt, net::Ipv4Addr, time::Duration};

use portcullis_discovery::BoxFuture;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::JoinSet,
    time::timeout,
};
use url::Url;

use super::{
    Interaction, InteractionError,
    page::{page, verdict},
};
use crate::{AuthorizationRequest, RedirectError, RedirectParameters};

/// A person with a browser on this machine: the redirect comes back to a port on loopback (RFC 8252 section 7.3).
///
/// The port is bound before anything is opened, and for as long as this value lives. One answer that carries the
/// request's `state` is accepted; all else that comes is told so and ignored. An answer must come within 5 min.
pub struct LoopbackRedirect {
    listener: Mutex<TcpListener>,
    redirect_uri: Url,
    open: Box<dyn Fn(&Url) + Send + Sync>,
    limit: Duration,
}

const PATH: &str = "/callback";
const MAX_HEAD: usize = 16 * 1024;
/// How long a browser may take to send its request once it is connected.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How many connections are read at once; browsers open some that they never use.
const MAX_CONNECTIONS: usize = 32;

impl LoopbackRedirect {
    /// How long a person has for the sign-in page.
    pub const LIMIT: Duration = Duration::from_secs(5 * 60);

    /// Binds a free port on `127.0.0.1`. `open` is given the authorization URL, which is `https` or loopback `http`,
    /// and shows it to the person; it must not pass it through a shell.
    ///
    /// # Errors
    /// [`InteractionError::Listen`] when no port can be bound.
    pub async fn bind(open: impl Fn(&Url) + Send + Sync + 'static) -> Result<Self, InteractionError> {
        let failed = |error: std::io::Error| InteractionError::Listen(error.kind());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect_uri = Url::parse(&format!("http://127.0.0.1:{port}{PATH}"))
            .map_err(|_| InteractionError::Listen(std::io::ErrorKind::AddrNotAvailable))?;
        Ok(Self { listener: Mutex::new(listener), redirect_uri, open: Box::new(open), limit: Self::LIMIT })
    }

    async fn answer(&self, request: &AuthorizationRequest) -> Result<RedirectParameters, InteractionError> {
        let listener = self.listener.lock().await;
        (self.open)(request.url());
        let mut readers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept(), if readers.len() < MAX_CONNECTIONS => {
                    let (stream, _) = accepted.map_err(|error| InteractionError::Listen(error.kind()))?;
                    readers.spawn(read_redirect(stream));
                }
                Some(read) = readers.join_next(), if !readers.is_empty() => {
                    let Ok(Some((stream, parameters))) = read else { continue };
                    let judged = request.judge(&parameters).map(|_| ());
                    if matches!(judged, Err(RedirectError::State)) {
                        let text = "This answer does not belong to the sign-in that is under way.";
                        respond(stream, page("400 Bad Request", "Not the answer that is waited for", text)).await;
                        continue;
                    }
                    respond(stream, verdict(&judged)).await;
                    return Ok(parameters);
                }
            }
        }
    }
}

impl Interaction for LoopbackRedirect {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        Box::pin(
            async move { timeout(self.limit, self.answer(request)).await.unwrap_or(Err(InteractionError::TimedOut)) },
        )
    }
}

/// Reads one request. What is no redirect is answered here and gives nothing.
async fn read_redirect(mut stream: TcpStream) -> Option<(TcpStream, RedirectParameters)> {
    let head = timeout(HEAD_LIMIT, read_head(&mut stream)).await.ok()??;
    let parsed = target(&head).and_then(|target| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        (path == PATH).then(|| RedirectParameters::parse(query))
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

async fn respond(mut stream: TcpStream, response: String) {
    // A browser that has gone needs no page.
    let _ = timeout(HEAD_LIMIT, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

impl fmt::Debug for LoopbackRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackRedirect").field("redirect_uri", &self.redirect_uri.as_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
