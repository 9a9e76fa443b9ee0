//! Sign-in at the authorization server of a protected resource, for all client commands.

mod browser;
mod settings;
mod terminal;
mod terminal_user;
mod token_variable;

use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
};

use anyhow::Context as _;
use portcullis_client::{
    Authorizer, AuthorizerSettings, AutoConsent, Interaction, LoopbackRedirect, StartUrl,
    TokenManager, store::CredentialStore,
};
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch, Product};
use portcullis_terminal::remove_from_output;
use url::Url;

use crate::cli;
use terminal::pasted;
use terminal_user::TerminalUser;

pub(crate) use browser::BrowserOpener;
pub(crate) use settings::{redirect_address, settings, store, store_in, store_in_memory};
pub(crate) use terminal::{print_delay, print_other_sign_in};
pub(crate) use token_variable::{TOKEN_VARIABLE, token_of_the_environment};

/// The token manager and fetcher of a client command.
pub(crate) struct SignIn {
    pub(crate) token_manager: Arc<TokenManager>,
    pub(crate) fetch: Arc<HttpFetch>,
}

impl SignIn {
    fn new(token_manager: TokenManager, fetch: Arc<HttpFetch>) -> Self {
        remove_from_output(token_manager.sent_secrets());
        Self {
            token_manager: Arc::new(token_manager),
            fetch,
        }
    }
}

/// The options of a login that other sign-ins lack.
#[derive(Clone, Copy, Default)]
pub(crate) struct LoginOptions {
    /// Whether to use the device flow.
    pub(crate) device: bool,
    /// Whether to register again.
    pub(crate) fresh: bool,
}

/// Prepares a sign-in, without requests or prompts. `PORTCULLIS_TOKEN` replaces it. Fails when an
/// option or `PORTCULLIS_TOKEN` is invalid, a file that an option names cannot be read, or the port
/// of the redirect cannot be used.
pub(crate) async fn prepare(
    arguments: &cli::SignIn,
    product: Product,
    start: StartUrl,
    store: CredentialStore,
) -> anyhow::Result<SignIn> {
    prepare_with(
        arguments,
        product,
        start,
        settings(arguments, store)?,
        ConsentOn::ThisMachine,
    )
    .await
}

/// As [`prepare`]; never requests more than `--scope`. Fails as [`prepare`] does.
pub(crate) async fn prepare_within_scope(
    arguments: &cli::SignIn,
    product: Product,
    start: StartUrl,
    store: CredentialStore,
) -> anyhow::Result<SignIn> {
    let mut settings = settings(arguments, store)?;
    settings.scopes_are_limit = true;
    prepare_with(arguments, product, start, settings, ConsentOn::ThisMachine).await
}

/// As [`prepare`], with the options of a login. Fails as [`prepare`] does.
pub(crate) async fn prepare_login(
    arguments: &cli::SignIn,
    product: Product,
    start: StartUrl,
    store: CredentialStore,
    login: LoginOptions,
) -> anyhow::Result<SignIn> {
    let mut settings = settings(arguments, store)?;
    settings.fresh_registration = login.fresh;
    let consent = if login.device {
        ConsentOn::OtherDevice
    } else {
        ConsentOn::ThisMachine
    };
    prepare_with(arguments, product, start, settings, consent).await
}

/// How a user signs out, for a page in the browser.
pub(crate) const SIGN_OUT_HINT: &str = "run `portcullis logout` for this server";

/// How the user gives consent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConsentOn {
    ThisMachine,
    /// By the device flow (RFC 8628).
    OtherDevice,
}

async fn prepare_with(
    arguments: &cli::SignIn,
    product: Product,
    start: StartUrl,
    settings: AuthorizerSettings,
    consent: ConsentOn,
) -> anyhow::Result<SignIn> {
    let mut fetch_settings = FetchSettings::of(product);
    fetch_settings.ca_file = arguments.ca_file.clone();
    let fetch = Arc::new(HttpFetch::new(fetch_settings)?);
    if let Some(token) = token_of_the_environment()? {
        return Ok(SignIn::new(
            TokenManager::with_access_token(start, token),
            fetch,
        ));
    }
    let for_authorizer = Arc::clone(&fetch) as _;
    let authorizer = match consent {
        ConsentOn::OtherDevice => device_authorizer(for_authorizer, settings)?,
        ConsentOn::ThisMachine => {
            let interaction = interaction(arguments, &start, &fetch).await?;
            Authorizer::builder(interaction)
                .fetch(for_authorizer)
                .settings(settings)
                .build()?
        }
    };
    Ok(SignIn::new(
        TokenManager::new(start, Arc::new(authorizer)),
        fetch,
    ))
}

/// Creates an authorizer that prints a page and a code for another device. Never fails: the
/// redirect URI of the device flow is a constant.
pub(super) fn device_authorizer(
    fetch: Arc<dyn Fetch>,
    settings: AuthorizerSettings,
) -> anyhow::Result<Authorizer> {
    let user = TerminalUser::with_other_device()?;
    Ok(Authorizer::device_builder(Arc::new(user))
        .fetch(fetch)
        .settings(settings)
        .build()?)
}

/// Returns the user in the browser of this machine; with `--auto-consent`, a program in the place
/// of the user.
async fn interaction(
    arguments: &cli::SignIn,
    start: &StartUrl,
    fetch: &Arc<HttpFetch>,
) -> anyhow::Result<Arc<dyn Interaction>> {
    if arguments.auto_consent {
        return Ok(Arc::new(AutoConsent::new(Arc::clone(fetch) as _)));
    }
    let opener = BrowserOpener::new(arguments.no_browser);
    let for_redirect = opener.clone();
    let open = move |url: &Url| for_redirect.open(url);
    let address = redirect_address(arguments)?;
    let mut redirect = match arguments.callback_port {
        Some(port) => LoopbackRedirect::bind_at(address.with_port(port), open)
            .await
            .with_context(|| format!("--callback-port {port}"))?,
        None => LoopbackRedirect::bind_at_port_for(start, address, open).await?,
    };
    let own = start.clone();
    redirect = redirect
        .with_delay_notice(move || print_delay(&own))
        .with_sign_out_hint(SIGN_OUT_HINT);
    if io::stdin().is_terminal() {
        let opener = opener.clone();
        redirect = redirect.with_pasted_input(move |wrong| {
            let opener = opener.clone();
            Box::pin(async move {
                opener.until_printed().await;
                pasted(wrong).await
            })
        });
    }
    Ok(Arc::new(TerminalUser::with_browser(redirect, opener)))
}
