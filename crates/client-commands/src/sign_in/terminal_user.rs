//! [`TerminalUser`]: a user who answers questions in a terminal.

use std::{
    fmt::Display,
    io::{self, IsTerminal as _},
};

use portcullis_client::{
    AuthorizationRequest, DeviceAuthorization, EndedSignIn, Interaction, InteractionError,
    LoopbackRedirect, NewRegistration, RedirectParameters, StartUrl,
    provider::{KnownIssuer, UnboundSignIn},
    registration::{ClientAuthentication, ClientInformation},
};
use portcullis_discovery::BoxFuture;
use portcullis_metadata::{EscapedText, Issuer, ResourceUri};
use portcullis_terminal::{is_yes, tell};
use url::Url;

use super::{
    browser::BrowserOpener,
    terminal::{hidden_line, line, print_other_sign_in},
};

/// The redirect URI in the registration of a client for the device flow. Nothing is sent there.
const DEVICE_REDIRECT: &str = "http://127.0.0.1/device";

/// A user at a terminal, with a browser here or on another device.
///
/// Questions are asked only if there is a terminal; otherwise their answer is no.
pub(super) struct TerminalUser {
    /// `None` in the device flow.
    browser: Option<(LoopbackRedirect, BrowserOpener)>,
    redirect_uri: Url,
}

impl TerminalUser {
    /// Returns a user whose browser is redirected to this machine.
    pub(super) fn with_browser(redirect: LoopbackRedirect, opener: BrowserOpener) -> Self {
        Self {
            redirect_uri: redirect.redirect_uri().clone(),
            browser: Some((redirect, opener)),
        }
    }

    /// Returns a user who enters a code on another device. Never fails: the redirect URI is a
    /// constant.
    pub(super) fn with_other_device() -> anyhow::Result<Self> {
        Ok(Self {
            browser: None,
            redirect_uri: Url::parse(DEVICE_REDIRECT)?,
        })
    }
}

impl Interaction for TerminalUser {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        match &self.browser {
            Some((redirect, opener)) => Box::pin(opener.authorize(redirect, request)),
            None => Box::pin(async { Err(InteractionError::Listen(io::ErrorKind::Unsupported)) }),
        }
    }

    fn show_device_code(&self, authorization: &DeviceAuthorization) {
        let DeviceAuthorization {
            user_code,
            verification_uri,
            expires_in,
            ..
        } = authorization;
        let minutes = expires_in.as_secs().div_ceil(60);
        tell(format_args!(
            "on any device, visit\n{verification_uri}\nand enter the code {} within {minutes} min",
            EscapedText(user_code)
        ));
        if let Some(complete) = &authorization.verification_uri_complete {
            tell(format_args!("or visit\n{complete}"));
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
            tell(format_args!(
                "{issuer} does not support registration by clients. Register one there, with the redirect URI\n{}",
                self.redirect_uri()
            ));
            Ok(ask_for_client().await)
        })
    }

    fn accept_broader_resource<'a>(
        &'a self,
        start: &'a StartUrl,
        resource: &'a ResourceUri,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        Box::pin(async move {
            Ok(is_confirmed(format!(
                "{start}\nis part of the resource\n{resource}\n\
                 A token for that resource is also valid for its other paths, and the server at the first address could\n\
                 use the token for them in your name. Sign in for the whole resource? [y/N]"
            ))
            .await)
        })
    }

    fn accept_unbound_token<'a>(
        &'a self,
        sign_in: &'a UnboundSignIn,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        Box::pin(async move {
            match unbound_question(sign_in) {
                Some(question) => Ok(is_confirmed(question).await),
                None => Ok(false),
            }
        })
    }

    fn accept_new_registration<'a>(
        &'a self,
        registration: &'a NewRegistration,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        Box::pin(async move {
            Ok(is_confirmed(format!(
                "{registration}.\nRegister again? This starts a new session. [y/N]"
            ))
            .await)
        })
    }

    fn sign_in_ended(&self, ended: &EndedSignIn) {
        tell(ended);
    }

    fn waiting_for_other_sign_in(&self, start: &StartUrl) {
        print_other_sign_in(start);
    }

    fn provider_recognized(&self, provider: &'static KnownIssuer) {
        tell(provider);
    }
}

/// The maximum length of the scopes in a question, in bytes.
const MAX_QUESTION_SCOPES: usize = 4096;

/// The question before a sign-in without `resource`. `None` if the scopes are too long: they would
/// push the rest of the question out of the terminal, and shortened ones are none to consent to.
fn unbound_question(sign_in: &UnboundSignIn) -> Option<String> {
    let scopes = match sign_in.scopes.as_str() {
        "" => "none; the authorization server decides",
        scopes if scopes.len() > MAX_QUESTION_SCOPES => return None,
        scopes => scopes,
    };
    Some(format!(
        "{start}\nrequires a token of\n{issuer}\nwith the scopes\n{scopes}\n\
         The request does not name the first address, so only the scopes limit where the token is valid, and the\n\
         server at the first address receives it. Sign in only if these are scopes of that server. Sign in? [y/N]",
        start = sign_in.start,
        issuer = sign_in.issuer,
    ))
}

/// Asks a question. Without a terminal, the answer is no.
async fn is_confirmed(question: impl Display) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    tell(question);
    line().await.is_some_and(|answer| is_yes(&answer))
}

/// Asks for a client. Returns `None` if the user enters no identifier or closes the input.
async fn ask_for_client() -> Option<ClientInformation> {
    tell("client id:");
    let client_id = line().await?.trim().to_owned();
    if client_id.is_empty() {
        return None;
    }
    tell("client secret (not shown; empty for none):");
    let secret = hidden_line().await?;
    let authentication = match secret.secret().is_empty() {
        true => ClientAuthentication::None,
        false => ClientAuthentication::Secret(secret),
    };
    Some(ClientInformation {
        client_id,
        authentication,
    })
}
