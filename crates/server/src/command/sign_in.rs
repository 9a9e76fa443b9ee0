//! Sign-in and credential storage, shared by the client commands.

use std::{
    io::{self, BufRead as _, IsTerminal as _},
    path::Path,
    sync::Arc,
    thread,
};

use anyhow::Context as _;
use portcullis_client::{
    AuthorizationRequest, Authorizer, AuthorizerSettings, AutoConsent, ClientAuthentication, ClientInformation,
    CredentialStore, DeviceAuthorization, Interaction, InteractionError, KnownIssuer, LoopbackRedirect,
    NewRegistration, RedirectAddress, RedirectError, RedirectParameters, StartUrl, TokenAuthMethod, TokenManager,
    UnboundSignIn,
};
use portcullis_discovery::{BoxFuture, Fetch, FetchSettings, HttpFetch};
use portcullis_metadata::{AccessToken, ClientIdUrl, EscapedText, Issuer, ResourceUri, Scopes, Secret, SystemClock};
use tokio::sync::oneshot;
use url::Url;

use super::confirmation::is_yes;
use crate::{cli, config::SecretSource};

/// The environment variable with a token that replaces the sign-in.
pub(crate) const TOKEN_VARIABLE: &str = "PORTCULLIS_TOKEN";

/// The token manager and fetcher of a client command.
pub(crate) struct SignIn {
    pub(crate) token_manager: Arc<TokenManager>,
    pub(crate) fetch: Arc<HttpFetch>,
}

/// The store of this user, or the one that `--store` names.
pub(crate) fn store(arguments: &cli::SignIn) -> anyhow::Result<CredentialStore> {
    store_in(arguments.store.as_deref())
}

/// The store in this directory, or in that of this user.
pub(crate) fn store_in(directory: Option<&Path>) -> anyhow::Result<CredentialStore> {
    let directory = directory.map(Path::to_owned).or_else(CredentialStore::user_directory);
    directory
        .map(CredentialStore::in_directory)
        .context("no directory for credentials: HOME is not set; name one with --store")
}

/// The options of a login that other sign-ins lack.
#[derive(Clone, Copy, Default)]
pub(crate) struct LoginOptions {
    /// Whether to use the device flow.
    pub(crate) device: bool,
    /// Whether to register again.
    pub(crate) fresh: bool,
}

/// Prepares a sign-in, without requests or prompts. `PORTCULLIS_TOKEN` replaces it.
pub(crate) async fn prepare(
    arguments: &cli::SignIn,
    start: StartUrl,
    store: CredentialStore,
) -> anyhow::Result<SignIn> {
    prepare_with(arguments, start, settings(arguments, store)?, false).await
}

/// As [`prepare`]; never requests more than `--scope`.
pub(crate) async fn prepare_within_scope(
    arguments: &cli::SignIn,
    start: StartUrl,
    store: CredentialStore,
) -> anyhow::Result<SignIn> {
    let mut settings = settings(arguments, store)?;
    settings.scopes_are_limit = true;
    prepare_with(arguments, start, settings, false).await
}

/// As [`prepare`], with the options of a login.
pub(crate) async fn prepare_login(
    arguments: &cli::SignIn,
    start: StartUrl,
    store: CredentialStore,
    login: LoginOptions,
) -> anyhow::Result<SignIn> {
    let mut settings = settings(arguments, store)?;
    settings.fresh_registration = login.fresh;
    prepare_with(arguments, start, settings, login.device).await
}

async fn prepare_with(
    arguments: &cli::SignIn,
    start: StartUrl,
    settings: AuthorizerSettings,
    by_device: bool,
) -> anyhow::Result<SignIn> {
    let mut fetch_settings = FetchSettings::default();
    fetch_settings.ca_file = arguments.ca_file.clone();
    let fetch = Arc::new(HttpFetch::new(fetch_settings)?);
    if let Some(token) = token_of_the_environment()? {
        return Ok(SignIn { token_manager: Arc::new(TokenManager::with_access_token(start, token)), fetch });
    }
    let for_authorizer = Arc::clone(&fetch) as _;
    let authorizer = if by_device {
        device_authorizer(for_authorizer, settings)?
    } else {
        let interaction = interaction(arguments, &start, &fetch).await?;
        Authorizer::new(for_authorizer, interaction, Arc::new(SystemClock::new()), settings)
    };
    Ok(SignIn { token_manager: Arc::new(TokenManager::new(start, Arc::new(authorizer))), fetch })
}

/// Creates an authorizer that prints a page and a code for another device.
pub(super) fn device_authorizer(fetch: Arc<dyn Fetch>, settings: AuthorizerSettings) -> anyhow::Result<Authorizer> {
    let user = TerminalUser { redirect: None, redirect_uri: Url::parse(DEVICE_REDIRECT)? };
    Ok(Authorizer::device(fetch, Arc::new(user), Arc::new(SystemClock::new()), settings))
}

/// The token of the environment, if any, that replaces the sign-in.
pub(crate) fn token_of_the_environment() -> anyhow::Result<Option<AccessToken>> {
    match std::env::var(TOKEN_VARIABLE) {
        Ok(token) if token.trim().is_empty() => {
            anyhow::bail!("{TOKEN_VARIABLE} is empty; unset it, or set it to a token")
        }
        Ok(token) => Ok(Some(AccessToken::new(token.trim()))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        // The error's text would contain the token.
        Err(std::env::VarError::NotUnicode(_)) => anyhow::bail!("{TOKEN_VARIABLE} is not UTF-8"),
    }
}

pub(super) fn settings(arguments: &cli::SignIn, store: CredentialStore) -> anyhow::Result<AuthorizerSettings> {
    let mut settings = AuthorizerSettings::default();
    settings.store = store;
    settings.private_addresses = arguments.allow_private;
    settings.token_auth_method = token_auth_method(arguments)?;
    settings.accept_broader_resource = arguments.accept_broader_resource;
    settings.provider.omit_resource = arguments.provider.no_resource;
    settings.provider.assume_pkce = arguments.provider.assume_pkce;
    settings.provider.accept_unbound_token = arguments.provider.accept_unbound_token;
    settings.provider.parameters.clone_from(&arguments.provider.authorize_params);
    if let Some(scope) = &arguments.scope {
        settings.scopes = Some(Scopes::parse(scope).with_context(|| format!("--scope {scope:?}"))?);
    }
    if let Some(issuer) = &arguments.authorization_server {
        settings.authorization_server =
            Some(Issuer::parse(issuer).with_context(|| format!("--authorization-server {issuer:?}"))?);
    }
    if let Some(url) = &arguments.client_metadata_url {
        let url = ClientIdUrl::parse(url).with_context(|| format!("--client-metadata-url {url:?}"))?;
        settings.client_id_url = Some(url);
    }
    if let Some(client_id) = &arguments.client_id {
        let authentication = match (&arguments.client_secret, &arguments.client_secret_file) {
            (Some(secret), _) => ClientAuthentication::Secret(secret.clone()),
            (None, Some(file)) => {
                ClientAuthentication::Secret(SecretSource::File(file.clone()).read().context("--client-secret-file")?)
            }
            (None, None) => ClientAuthentication::None,
        };
        settings.client = Some(ClientInformation { client_id: client_id.clone(), authentication });
    }
    Ok(settings)
}

fn token_auth_method(arguments: &cli::SignIn) -> anyhow::Result<Option<TokenAuthMethod>> {
    let method = arguments.token_auth_method.as_deref().and_then(TokenAuthMethod::from_name);
    if let Some(method) = method.filter(|method| *method != TokenAuthMethod::None)
        && arguments.client_id.is_some()
        && arguments.client_secret_file.is_none()
        && arguments.client_secret.is_none()
    {
        anyhow::bail!("--token-auth-method {} with --client-id needs --client-secret-file", method.name());
    }
    Ok(method)
}

async fn interaction(
    arguments: &cli::SignIn,
    start: &StartUrl,
    fetch: &Arc<HttpFetch>,
) -> anyhow::Result<Arc<dyn Interaction>> {
    if arguments.auto_consent {
        return Ok(Arc::new(AutoConsent::new(Arc::clone(fetch) as _)));
    }
    let open = if arguments.no_browser { print_url } else { open_browser };
    let address = redirect_address(arguments)?;
    let mut redirect = match arguments.callback_port {
        Some(port) => LoopbackRedirect::bind_at(address.with_port(port), open)
            .await
            .with_context(|| format!("--callback-port {port}"))?,
        None => LoopbackRedirect::bind_at_port_for(start, address, open).await?,
    };
    let own = start.clone();
    redirect = redirect.with_delay_notice(move || delayed(&own));
    if arguments.no_browser && io::stdin().is_terminal() {
        redirect = redirect.with_pasted_input(|wrong| Box::pin(pasted(wrong)));
    }
    let redirect_uri = redirect.redirect_uri().clone();
    Ok(Arc::new(TerminalUser { redirect: Some(redirect), redirect_uri }))
}

/// The host and the path of the redirect, on a free port.
pub(super) fn redirect_address(arguments: &cli::SignIn) -> anyhow::Result<RedirectAddress> {
    let mut address = RedirectAddress::default();
    if let Some(host) = &arguments.callback_host {
        address = address.with_host(host).context("--callback-host")?;
    }
    if let Some(path) = &arguments.callback_path {
        address = address.with_path(path).with_context(|| format!("--callback-path {path:?}"))?;
    }
    Ok(address)
}

/// Prints advice in case the browser shows an error. The wait continues.
pub(super) fn delayed(start: &StartUrl) {
    super::tell(format_args!(
        "no answer from the browser yet. If it shows an error, such as an unknown client, stop this and run\n\
         portcullis login --fresh {start}\nto register again. Still waiting."
    ));
}

/// The redirect URI in the registration of a client for the device flow. Nothing is sent there.
const DEVICE_REDIRECT: &str = "http://127.0.0.1/device";

/// A user at a terminal, with a browser here or on another device.
struct TerminalUser {
    /// None in the device flow.
    redirect: Option<LoopbackRedirect>,
    redirect_uri: Url,
}

impl Interaction for TerminalUser {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        match &self.redirect {
            Some(redirect) => redirect.authorize(request),
            None => Box::pin(async { Err(InteractionError::Listen(io::ErrorKind::Unsupported)) }),
        }
    }

    fn show_device_code(&self, authorization: &DeviceAuthorization) {
        let DeviceAuthorization { user_code, verification_uri, expires_in, .. } = authorization;
        let minutes = expires_in.as_secs().div_ceil(60);
        super::tell(format_args!(
            "on any device, visit\n{verification_uri}\nand enter the code {} within {minutes} min",
            EscapedText(user_code)
        ));
        if let Some(complete) = &authorization.verification_uri_complete {
            super::tell(format_args!("or visit\n{complete}"));
        }
    }

    fn client_information<'a>(
        &'a self,
        issuer: &'a Issuer,
    ) -> BoxFuture<'a, Result<Option<ClientInformation>, InteractionError>> {
        Box::pin(async move {
            if !io::stdin().is_terminal() {
                return Ok(None);
            }
            super::tell(format_args!(
                "{issuer} does not support registration by clients. Register one there, with the redirect URI\n{}",
                self.redirect_uri()
            ));
            Ok(ask_for_client())
        })
    }

    fn accept_broader_resource<'a>(
        &'a self,
        start: &'a StartUrl,
        resource: &'a ResourceUri,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        Box::pin(async move {
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                return Ok(false);
            }
            super::tell(format_args!(
                "{start}\nis part of the resource\n{resource}\n\
                 A token for that resource is also valid for its other paths, and the server at the first address could\n\
                 use the token for them in your name. Sign in for the whole resource? [y/N]"
            ));
            Ok(line().await.is_some_and(|answer| is_yes(&answer)))
        })
    }

    fn accept_unbound_token<'a>(&'a self, sign_in: &'a UnboundSignIn) -> BoxFuture<'a, Result<bool, InteractionError>> {
        Box::pin(async move {
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                return Ok(false);
            }
            super::tell(unbound_question(sign_in));
            Ok(line().await.is_some_and(|answer| is_yes(&answer)))
        })
    }

    fn accept_new_registration<'a>(
        &'a self,
        registration: &'a NewRegistration,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        Box::pin(async move {
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                return Ok(false);
            }
            super::tell(format_args!("{registration}.\nRegister again? This starts a new session. [y/N]"));
            Ok(line().await.is_some_and(|answer| is_yes(&answer)))
        })
    }

    fn provider_recognized(&self, provider: &'static KnownIssuer) {
        super::tell(provider);
    }
}

/// The question before a sign-in without `resource`.
fn unbound_question(sign_in: &UnboundSignIn) -> String {
    let scopes = match sign_in.scopes.is_empty() {
        true => "none; the authorization server decides".to_owned(),
        false => sign_in.scopes.to_string(),
    };
    format!(
        "{start}\nrequires a token of\n{issuer}\nwith the scopes\n{scopes}\n\
         The request does not name the first address, so only the scopes limit where the token is valid, and the\n\
         server at the first address receives it. Sign in only if these are scopes of that server. Sign in? [y/N]",
        start = sign_in.start,
        issuer = sign_in.issuer,
    )
}

/// Asks for a client. None if the user enters no identifier or closes the input.
fn ask_for_client() -> Option<ClientInformation> {
    super::tell("client id:");
    let mut client_id = String::new();
    io::stdin().lock().read_line(&mut client_id).ok()?;
    let client_id = client_id.trim().to_owned();
    if client_id.is_empty() {
        return None;
    }
    super::tell("client secret (not shown; empty for none):");
    let secret = Secret::new(rpassword::read_password().ok()?);
    let authentication = match secret.secret().is_empty() {
        true => ClientAuthentication::None,
        false => ClientAuthentication::Secret(secret),
    };
    Some(ClientInformation { client_id, authentication })
}

/// Reads the pasted address.
async fn pasted(wrong: Option<RedirectError>) -> Option<String> {
    match wrong {
        None => super::tell("or paste the final URL of the browser:"),
        Some(wrong) => super::tell(format_args!("this is not that address ({wrong}); paste the whole address:")),
    }
    line().await
}

/// Reads a line that the user types, on a separate thread, so that the process can end before it.
async fn line() -> Option<String> {
    let (sender, received) = oneshot::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let _ = sender.send(read.ok().filter(|read| *read > 0).map(|_| line));
    });
    received.await.ok().flatten()
}

pub(super) fn open_browser(url: &Url) {
    super::tell(format_args!("opening the browser for your consent; if nothing opens, visit\n{url}"));
    let url = url.clone();
    // A browser in the terminal runs until its user leaves it. Meanwhile, the redirect must be received.
    std::thread::spawn(move || {
        if let Err(error) = webbrowser::open(url.as_str()) {
            tracing::debug!(error = %error, "no browser opened");
            super::tell(
                "no browser can be opened on this machine; `portcullis login --device URL` signs in with another device",
            );
        }
    });
}

pub(super) fn print_url(url: &Url) {
    super::tell(format_args!("for your consent, visit\n{url}"));
}
