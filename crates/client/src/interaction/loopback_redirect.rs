//! [`LoopbackRedirect`]: receives the redirect on a loopback port.

use std::{fmt, future::pending, sync::Arc, time::Duration};

use portcullis_discovery::BoxFuture;
use sha2::{Digest as _, Sha256};
use tokio::{
    net::TcpStream,
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::{sleep, timeout},
};
use url::Url;

use super::{
    Interaction, InteractionError,
    page::{page, redirect_to, result_page},
    redirect_address::RedirectAddress,
    redirect_server::{BrowserRequest, Content, ONE_TIME, SignInState, respond, serve},
};
use crate::{AuthorizationRequest, RedirectError, RedirectParameters, StartUrl, random};

/// Opens the user's browser and receives the redirect at a loopback port (RFC 8252 section 7.3), or
/// as pasted text.
///
/// The port is bound before the browser opens, for as long as this value lives. One response with
/// the request's `state` is accepted; every other request gets an error page, including a second
/// response. The response must arrive within 5 min.
///
/// Other users of the machine can read the command line of a browser. With the authorization URL
/// they could sign in with their own account and bring the response here. The browser therefore
/// gets a random one-time address on the port, which redirects to the authorization URL. If it is
/// requested twice, the sign-in ends ([`InteractionError::OpenedTwice`]). On Linux, connections of
/// other users are rejected. A response needs no cookie: users can also open the authorization URL
/// itself, in any browser.
pub struct LoopbackRedirect {
    redirect_uri: Url,
    open: Box<dyn Fn(&Url) + Send + Sync>,
    paste: Option<Box<Paste>>,
    delayed: Option<Box<dyn Fn() + Send + Sync>>,
    /// The time limit of a sign-in.
    limit: Duration,
    one_at_a_time: Mutex<()>,
    state: Arc<SignInState>,
    /// The tasks that accept connections, one for each address.
    servers: Vec<JoinHandle<()>>,
}

/// Reads the final URL of the browser. The argument is why the previous text is invalid.
type Paste = dyn Fn(Option<RedirectError>) -> BoxFuture<'static, Option<String>> + Send + Sync;

impl LoopbackRedirect {
    /// The time limit of the sign-in page.
    pub const TIMEOUT: Duration = Duration::from_secs(5 * 60);

    /// The time after which [`with_delay_notice`](Self::with_delay_notice) is called.
    pub const DELAY: Duration = Duration::from_secs(60);

    /// The redirect URI for a client metadata document: it matches any port (RFC 8252 section 7.3).
    pub const ANY_PORT: &str = "http://127.0.0.1/callback";

    /// Binds a free port on `127.0.0.1`. `open` receives the one-time address of a sign-in, which
    /// redirects to the authorization URL, and opens it in the user's browser or shows it; it must
    /// not pass the URL through a shell.
    ///
    /// # Errors
    /// [`InteractionError::Listen`] when no port can be bound.
    pub async fn bind(
        open: impl Fn(&Url) + Send + Sync + 'static,
    ) -> Result<Self, InteractionError> {
        Self::bind_to(0, open).await
    }

    /// Binds this port on `127.0.0.1`, for a client that is registered with it.
    ///
    /// # Errors
    /// [`InteractionError::Listen`] when it cannot be bound.
    pub async fn bind_to(
        port: u16,
        open: impl Fn(&Url) + Send + Sync + 'static,
    ) -> Result<Self, InteractionError> {
        Self::bind_at(RedirectAddress::default().with_port(port), open).await
    }

    /// Binds the port of this address on every address of its host, for a client that is registered
    /// with it.
    ///
    /// # Errors
    /// [`InteractionError::Listen`] when it cannot be bound.
    pub async fn bind_at(
        address: RedirectAddress,
        open: impl Fn(&Url) + Send + Sync + 'static,
    ) -> Result<Self, InteractionError> {
        let (address, listeners) = address.bind().await?;
        let redirect_uri = address.uri()?;
        let path = Arc::<str>::from(address.path());
        let state = Arc::<SignInState>::default();
        let server = |listener| tokio::spawn(serve(listener, path.clone(), state.clone()));
        let servers = listeners.into_iter().map(server).collect();
        let limit = Self::TIMEOUT;
        let one_at_a_time = Mutex::default();
        let open = Box::new(open);
        Ok(Self {
            redirect_uri,
            open,
            paste: None,
            delayed: None,
            limit,
            one_at_a_time,
            state,
            servers,
        })
    }

    /// Binds the port on `127.0.0.1` that is derived from the resource, so that a registration can
    /// be reused at the next start. If that port is taken, it binds a free one.
    ///
    /// # Errors
    /// [`InteractionError::Listen`] when no port can be bound.
    pub async fn bind_for(
        start: &StartUrl,
        open: impl Fn(&Url) + Send + Sync + Clone + 'static,
    ) -> Result<Self, InteractionError> {
        Self::bind_at_port_for(start, RedirectAddress::default(), open).await
    }

    /// As [`bind_for`](Self::bind_for), with the host and the path of this address.
    ///
    /// # Errors
    /// [`InteractionError::Listen`] when no port can be bound.
    pub async fn bind_at_port_for(
        start: &StartUrl,
        address: RedirectAddress,
        open: impl Fn(&Url) + Send + Sync + Clone + 'static,
    ) -> Result<Self, InteractionError> {
        match Self::bind_at(
            address.clone().with_port(Self::port_for(start)),
            open.clone(),
        )
        .await
        {
            Ok(bound) => Ok(bound),
            Err(_) => Self::bind_at(address.with_port(0), open).await,
        }
    }

    /// The redirect URI for a port. The port need not be bound.
    ///
    /// # Errors
    /// None in practice: every port gives a valid URL.
    pub fn uri(port: u16) -> Result<Url, InteractionError> {
        RedirectAddress::default().with_port(port).uri()
    }

    /// The port that is derived from a resource ([`bind_for`](Self::bind_for)): one between 20000
    /// and 31999, below the ephemeral port ranges of operating systems.
    pub fn port_for(start: &StartUrl) -> u16 {
        let digest = Sha256::digest(start.url().as_str());
        20_000 + u16::from_be_bytes([digest[0], digest[1]]) % 12_000
    }

    /// Also accepts the final URL of the browser as text from `read`, for a browser on another
    /// machine, which cannot reach this port. `read` is called when the wait begins, and again with
    /// the reason if its text is invalid. If it returns None, it is not called again.
    #[must_use]
    pub fn with_pasted_input(
        mut self,
        read: impl Fn(Option<RedirectError>) -> BoxFuture<'static, Option<String>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.paste = Some(Box::new(read));
        self
    }

    /// Calls `delayed` once for each sign-in that has no response after [`DELAY`](Self::DELAY), for
    /// advice in case the server shows an error. The wait continues.
    #[must_use]
    pub fn with_delay_notice(mut self, delayed: impl Fn() + Send + Sync + 'static) -> Self {
        self.delayed = Some(Box::new(delayed));
        self
    }

    /// Sets how users sign out, for the page that a browser gets at the address of a sign-in that
    /// has ended. It is the start of a sentence, such as "run `example logout`". By default "sign
    /// out of this server".
    #[must_use]
    pub fn with_sign_out_hint(self, hint: impl Into<String>) -> Self {
        // Without a value before, it is set.
        let _ = self.state.sign_out.set(hint.into());
        self
    }

    /// Waits for a response with the request's `state`, from the browser or as pasted text.
    async fn wait_for_response(
        &self,
        request: &AuthorizationRequest,
    ) -> Result<RedirectParameters, InteractionError> {
        let _one_at_a_time = self.one_at_a_time.lock().await;
        let (sender, mut requests) = mpsc::channel(1);
        // The sender stays after the wait. Later responses fail to send and are rejected.
        *self.state.current.lock() = Some(sender);
        let name = random::secret().map_err(|_| InteractionError::NoRandomness)?;
        let mut one_time = self.redirect_uri.clone();
        one_time.set_path(&format!("{ONE_TIME}{}", name.secret()));
        (self.open)(&one_time);
        let mut is_opened = false;
        let mut pasted = self.pasted_text(None);
        let mut delay: BoxFuture<'_, ()> = Box::pin(sleep(Self::DELAY));
        loop {
            tokio::select! {
                () = &mut delay => {
                    if let Some(delayed) = &self.delayed {
                        delayed();
                    }
                    delay = Box::pin(pending());
                }
                Some(BrowserRequest { browser, content }) = requests.recv() => match content {
                    Content::OneTime(requested) if requested != name => {
                        respond(browser, page("404 Not Found", "Not found", "This is not the address of a sign-in.")).await;
                    }
                    Content::OneTime(_) if is_opened => {
                        respond(browser, page("409 Conflict", "Sign-in stopped", OPENED_TWICE)).await;
                        return Err(InteractionError::OpenedTwice);
                    }
                    Content::OneTime(_) => {
                        is_opened = true;
                        respond(browser, redirect_to(request.url())).await;
                    }
                    Content::Redirect(parameters) => {
                        if let Some(parameters) = accept_redirect(request, browser, parameters).await {
                            return Ok(parameters);
                        }
                    }
                },
                text = &mut pasted => match text.map(|text| self.accept_pasted(request, &text)) {
                    Some(Ok(parameters)) => return Ok(parameters),
                    Some(Err(error)) => pasted = self.pasted_text(Some(error)),
                    None => pasted = Box::pin(pending()),
                },
            }
        }
    }

    /// Asks for the final URL of the browser, again if `error` is why the previous text is invalid.
    fn pasted_text(&self, error: Option<RedirectError>) -> BoxFuture<'static, Option<String>> {
        match &self.paste {
            Some(read) => read(error),
            None => Box::pin(pending()),
        }
    }

    /// Returns the parameters of a pasted URL. Fails when the user must be asked again: the text is
    /// not the redirect, or belongs to another sign-in. Other invalid parameters are returned,
    /// because asking again does not help.
    fn accept_pasted(
        &self,
        request: &AuthorizationRequest,
        text: &str,
    ) -> Result<RedirectParameters, RedirectError> {
        let parameters = RedirectParameters::parse_pasted(text, &self.redirect_uri)?;
        match request.validate_response(&parameters) {
            Err(error @ RedirectError::State) => Err(error),
            _ => Ok(parameters),
        }
    }
}

/// The page for the second request for a one-time address.
const OPENED_TWICE: &str = "This address works once, and was opened before, possibly by another user of this machine. The \
    sign-in was stopped; start it again.";

/// Shows the browser the result of its redirect, and returns the parameters. `None` if they belong
/// to another sign-in, so that the wait continues.
async fn accept_redirect(
    request: &AuthorizationRequest,
    browser: TcpStream,
    parameters: RedirectParameters,
) -> Option<RedirectParameters> {
    let validated = request.validate_response(&parameters).map(drop);
    if matches!(validated, Err(RedirectError::State)) {
        let text = "This response does not belong to the current sign-in.";
        respond(
            browser,
            page("400 Bad Request", "Unexpected response", text),
        )
        .await;
        return None;
    }
    respond(browser, result_page(&validated)).await;
    Some(parameters)
}

impl Interaction for LoopbackRedirect {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        Box::pin(async move {
            timeout(self.limit, self.wait_for_response(request))
                .await
                .unwrap_or(Err(InteractionError::TimedOut))
        })
    }
}

impl Drop for LoopbackRedirect {
    fn drop(&mut self) {
        self.servers.iter().for_each(JoinHandle::abort);
    }
}

impl fmt::Debug for LoopbackRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackRedirect")
            .field("redirect_uri", &self.redirect_uri.as_str())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
