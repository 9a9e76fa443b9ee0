//! `portcullis connect URL`: the bridge between standard streams and a remote server.

mod streams;
mod token_command;

use std::{
    error::Error,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context as _, bail};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use portcullis_bridge::{Bridge, BridgeSettings, BridgeTransport, MessageTooLarge};
use portcullis_client::{
    AuthorizationRequest, Authorizer, AutoConsent, EndedSignIn, Interaction, InteractionError,
    LoopbackRedirect, NewRegistration, NonInteractiveGrant, RedirectAddress, RedirectParameters,
    StartUrl, TokenManager, provider::KnownIssuer, store::CredentialStore,
};
use portcullis_discovery::{BoxFuture, FetchSettings, HttpFetch, Product};
use portcullis_mcp_client::McpError;
use portcullis_terminal::{advice, login_command, output_error, remove_from_output, tell};
use url::Url;

use self::{streams::Streams, token_command::TokenCommand};
use crate::{cli, end_signals::EndSignals, sign_in};

pub(crate) fn run(arguments: &cli::Connect, product: Product) -> anyhow::Result<()> {
    let settings = settings(arguments)?;
    let start = StartUrl::parse(&arguments.sign_in.url)?;
    let streams = Streams::take().context("standard input and output")?;
    let runtime = crate::control_runtime()?;
    let outcome = runtime.block_on(connect(arguments, product, start, settings, streams));
    // A pending read of standard input cannot be cancelled, and would block a normal shutdown.
    runtime.shutdown_background();
    outcome
}

async fn connect(
    arguments: &cli::Connect,
    product: Product,
    start: StartUrl,
    settings: BridgeSettings,
    streams: Streams,
) -> anyhow::Result<()> {
    // Before anything that takes time: signals can arrive as soon as the process runs.
    let mut signals = EndSignals::listen()?;
    let mut fetch_settings = FetchSettings::of(product);
    fetch_settings.ca_file = arguments.sign_in.ca_file.clone();
    let fetch = Arc::new(HttpFetch::new(fetch_settings)?);
    let token_manager = tokio::select! {
        token_manager = token_manager(arguments, start, &fetch, &settings) => Arc::new(token_manager?),
        // Nothing was sent yet.
        _ = signals.next() => return Ok(()),
    };
    remove_from_output(token_manager.sent_secrets());
    let bridge = Bridge::new(Arc::clone(&token_manager), fetch, settings);
    let stop = async {
        signals.next().await;
    };
    let ran = bridge.run(streams.input, streams.output, stop).await;
    signals.finish_refreshes(&token_manager).await;
    ran.map_err(output_error)
        .context("standard input and output")
}

fn settings(arguments: &cli::Connect) -> anyhow::Result<BridgeSettings> {
    let mut headers = HeaderMap::new();
    for text in &arguments.headers {
        let (name, value) = header_of(text, |name| std::env::var(name).ok())?;
        headers.append(name, value);
    }
    let mut settings = BridgeSettings::default();
    settings.headers = headers;
    settings.transport = match arguments.transport {
        cli::Transport::Any => BridgeTransport::Any,
        cli::Transport::Http => BridgeTransport::StreamableHttp,
        cli::Transport::Sse => BridgeTransport::HttpSse,
    };
    settings.max_message = usize::from(arguments.max_message) * 1024 * 1024;
    settings.timeout = Duration::from_secs(arguments.timeout.into());
    settings.advice = advice_to_client;
    Ok(settings)
}

/// What a user can do about an error of the bridge, with the options and commands of this program.
fn advice_to_client(error: &(dyn Error + 'static)) -> String {
    if error.is::<MessageTooLarge>() {
        return ", the limit that --max-message sets".to_owned();
    }
    match error.downcast_ref() {
        // Otherwise the server could not validate the token, and says when to try again.
        Some(McpError::Unauthorized { retry_after }) if retry_after.delay().is_none() => {
            "; `portcullis explain-token` for this URL says why a given token is rejected, and `portcullis doctor --login` \
             examines the sign-in"
                .to_owned()
        }
        _ => advice(error),
    }
}

/// Parses `Name: value`. Errors do not contain the value, which can be a secret.
fn header_of(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let Some((name, value)) = text.split_once(':') else {
        bail!("--header is not of the form `Name: value`")
    };
    let name: HeaderName = name
        .trim()
        .parse()
        .ok()
        .context("--header has an invalid name")?;
    if !BridgeSettings::is_custom_header(&name) {
        bail!("--header {name}: the transport sets this header itself");
    }
    let value = expanded(value.trim(), variable).with_context(|| format!("--header {name}"))?;
    let mut value = HeaderValue::from_str(value.trim()).ok().with_context(|| {
        format!("--header {name}: the value has characters that a header cannot contain")
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Replaces `${NAME}` in a text by environment variables.
fn expanded(text: &str, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        whole.push_str(before);
        whole.push_str(&variable(name).with_context(|| {
            format!("the environment variable {name} is not set, or not UTF-8")
        })?);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

async fn token_manager(
    arguments: &cli::Connect,
    start: StartUrl,
    fetch: &Arc<HttpFetch>,
    settings: &BridgeSettings,
) -> anyhow::Result<TokenManager> {
    if settings.headers.contains_key(header::AUTHORIZATION) {
        return Ok(TokenManager::unauthenticated(start));
    }
    if let Some(token) = sign_in::token_of_the_environment()? {
        return Ok(TokenManager::with_access_token(start, token));
    }
    if let Some(command) = &arguments.token_command {
        return Ok(TokenManager::with_source(
            start,
            Arc::new(TokenCommand::parse(command)?),
        ));
    }
    let sign_in = &arguments.sign_in;
    let store =
        match sign_in.store.directory.is_some() || CredentialStore::user_directory().is_some() {
            true => sign_in::store(sign_in)?,
            // Some clients start programs with an empty environment.
            false => sign_in::store_in_memory(sign_in),
        };
    if let (Some(client_id), Some(issuer)) = (&sign_in.client_id, &sign_in.recorded_issuer) {
        store.bind_client(client_id, &start, issuer).await?;
    }
    if arguments.client_credentials {
        if sign_in.client_secret_file.is_none() && sign_in.client_secret.is_none() {
            bail!("--client-credentials needs --client-secret-file");
        }
        let grant = NonInteractiveGrant::ClientCredentials;
        let settings = sign_in::settings(sign_in, store)?;
        let builder = Authorizer::non_interactive_builder(grant);
        let authorizer = builder
            .fetch(Arc::clone(fetch) as _)
            .settings(settings)
            .build()?;
        return Ok(TokenManager::new(start, Arc::new(authorizer)));
    }
    if arguments.device {
        let settings = sign_in::settings(sign_in, store)?;
        return Ok(TokenManager::new(
            start,
            Arc::new(sign_in::device_authorizer(
                Arc::clone(fetch) as _,
                settings,
            )?),
        ));
    }
    let interaction: Arc<dyn Interaction> = match sign_in.auto_consent {
        true => Arc::new(AutoConsent::new(Arc::clone(fetch) as _)),
        false => Arc::new(Browser::new(&start, sign_in)?),
    };
    let settings = sign_in::settings(sign_in, store)?;
    let authorizer = Authorizer::builder(interaction)
        .fetch(Arc::clone(fetch) as _)
        .settings(settings)
        .build()?;
    Ok(TokenManager::new(start, Arc::new(authorizer)))
}

/// Opens the user's browser. The redirect's port is bound only during a sign-in, because many
/// instances run at the same time for days, and only one of them signs in.
struct Browser {
    wanted: RedirectAddress,
    wanted_uri: Url,
    /// Whether the user chose the port, so that no other one is used.
    is_fixed: bool,
    /// The address of all sign-ins of this process, chosen at the first one.
    chosen: OnceLock<(RedirectAddress, Url)>,
    start: StartUrl,
    opener: sign_in::BrowserOpener,
}

impl Browser {
    fn new(start: &StartUrl, arguments: &cli::SignIn) -> anyhow::Result<Self> {
        let port = arguments
            .callback_port
            .unwrap_or_else(|| LoopbackRedirect::port_for(start));
        let opener = sign_in::BrowserOpener::new(arguments.no_browser);
        let wanted = sign_in::redirect_address(arguments)?.with_port(port);
        let is_fixed = arguments.callback_port.is_some();
        let wanted_uri = wanted.uri()?;
        let start = start.clone();
        Ok(Self {
            wanted,
            wanted_uri,
            is_fixed,
            chosen: OnceLock::new(),
            start,
            opener,
        })
    }

    /// The preferred port, or a free one if another program uses it.
    fn chosen(&self) -> &(RedirectAddress, Url) {
        self.chosen.get_or_init(|| {
            let is_wanted = self.is_fixed || self.wanted.is_free();
            let other = (!is_wanted).then(|| self.wanted.with_free_port()).flatten();
            let other = other.and_then(|address| address.uri().ok().map(|uri| (address, uri)));
            other.unwrap_or_else(|| (self.wanted.clone(), self.wanted_uri.clone()))
        })
    }
}

impl Interaction for Browser {
    fn redirect_uri(&self) -> &Url {
        &self.chosen().1
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        Box::pin(async move {
            let opener = self.opener.clone();
            let redirect =
                LoopbackRedirect::bind_at(self.chosen().0.clone(), move |url| opener.open(url))
                    .await?;
            let start = self.start.clone();
            let redirect = redirect.with_delay_notice(move || sign_in::print_delay(&start));
            let redirect = redirect.with_sign_out_hint(sign_in::SIGN_OUT_HINT);
            self.opener.authorize(&redirect, request).await
        })
    }

    fn accept_new_registration<'a>(
        &'a self,
        registration: &'a NewRegistration,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        // Standard input carries the protocol, so that the user cannot be asked.
        let command = login_command(&registration.start, &registration.scopes);
        tell(format_args!(
            "{registration}. To register again, which starts a new session, run\n{command}"
        ));
        Box::pin(async { Ok(false) })
    }

    fn sign_in_ended(&self, ended: &EndedSignIn) {
        tell(ended);
    }

    fn waiting_for_other_sign_in(&self, start: &StartUrl) {
        sign_in::print_other_sign_in(start);
    }

    fn provider_recognized(&self, provider: &'static KnownIssuer) {
        tell(provider);
    }
}

#[cfg(test)]
mod tests {
    use portcullis_mcp_client::RetryAfter;

    use super::*;

    fn header(text: &str) -> Result<String, String> {
        let variable = |name: &str| (name == "TOKEN").then(|| "hush".to_owned());
        header_of(text, variable)
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .map_err(|error| format!("{error:#}"))
    }

    /// J8: after a final 401, the error names the commands that find the cause. A server that asks
    /// to try again has not rejected the token.
    #[test]
    fn a_rejected_token_has_its_advice() {
        let with = |headers: HeaderMap| {
            advice_to_client(&McpError::Unauthorized {
                retry_after: RetryAfter::of(&headers),
            })
        };
        let rejected = with(HeaderMap::new());
        for command in ["`portcullis explain-token`", "`portcullis doctor --login`"] {
            assert!(rejected.contains(command), "{rejected}");
        }
        let later = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static("5"))]);
        assert_eq!(with(later), "");
    }

    #[test]
    fn headers_are_read_with_what_the_environment_holds() {
        assert_eq!(header("X-Team: blue").unwrap(), "x-team=blue");
        assert_eq!(
            header("Authorization:Bearer ${TOKEN}").unwrap(),
            "authorization=Bearer hush"
        );
        assert_eq!(
            header("a: ${TOKEN}-${TOKEN} $ { ${").unwrap(),
            "a=hush-hush $ { ${"
        );
        assert_eq!(header("a:").unwrap(), "a=");
    }

    /// J2: the error for an invalid header does not contain its value.
    #[test]
    fn a_header_is_rejected_without_its_value() {
        for text in [
            "secret",
            "a b: secret",
            "a: secret\r\nb: c",
            "Mcp-Session-Id: secret",
            "Content-Length: secret",
        ] {
            let error = header(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
        assert_eq!(
            header("a: ${NONE}").unwrap_err(),
            "--header a: the environment variable NONE is not set, or not UTF-8"
        );
    }
}
