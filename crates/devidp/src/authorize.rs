use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use portcullis_metadata::{PkceChallenge, ResourceUri, Scopes};

use crate::{
    GrantType,
    app::App,
    clients::Client,
    code, consent,
    dpop::{self, Thumbprint},
    form::Params,
    oauth_error::{ErrorName, OAuthRefusal},
    redirect::RedirectUri,
    respond::{self, Reply},
    user::is_user_name,
};

/// A request of the authorization endpoint that can be granted (RFC 6749 section 4.1.1).
#[derive(Clone)]
pub(crate) struct AuthorizationRequest {
    pub(crate) client_id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) redirect: RedirectUri,
    pub(crate) state: Option<Box<str>>,
    pub(crate) challenge: PkceChallenge,
    /// What is granted of what was asked for.
    pub(crate) scopes: Scopes,
    pub(crate) resource: ResourceUri,
    pub(crate) login_hint: Option<Box<str>>,
    /// The key that the code is for (RFC 9449 section 10).
    pub(crate) key: Option<Thumbprint>,
}

/// Why a request cannot be granted, and who may know.
pub(crate) enum AuthorizeError {
    /// The redirect URI cannot be trusted: only the person at the browser is told.
    Untrusted(&'static str),
    /// The client is told, at its redirect URI.
    Returned { redirect: RedirectUri, state: Option<Box<str>>, refusal: OAuthRefusal },
}

/// Answers the authorization endpoint: with the consent page, with a code at once, or with an error.
pub(crate) async fn authorize(app: &App, query: &str, headers: &HeaderMap) -> Result<Reply, getrandom::Error> {
    match AuthorizationRequest::parse(app, &Params::parse(query.as_bytes())).await {
        Ok(request) if app.settings.auto_consent && request.redirect.is_loopback() => {
            let user = request.login_hint.clone().unwrap_or_else(|| app.settings.user.as_str().into());
            let location = code::issue(app, request, user)?;
            Ok(respond::redirect(StatusCode::FOUND, &location))
        }
        Ok(request) => consent::ask(app, request, headers),
        Err(AuthorizeError::Untrusted(reason)) => {
            tracing::info!(authorize.refused = reason, "showed an error page");
            respond::page_refusal(StatusCode::BAD_REQUEST, reason)
        }
        Err(AuthorizeError::Returned { redirect, state, refusal }) => {
            tracing::info!(
                authorize.error = refusal.error.as_str(),
                authorize.refused = refusal.description,
                "sent an error to the client"
            );
            let location = error_location(app, &redirect, state.as_deref(), refusal);
            Ok(respond::redirect(StatusCode::FOUND, &location))
        }
    }
}

/// The redirect URI with an error (RFC 6749 section 4.1.2.1) and the issuer (RFC 9207).
pub(crate) fn error_location(app: &App, redirect: &RedirectUri, state: Option<&str>, refusal: OAuthRefusal) -> String {
    let error = [("error", refusal.error.as_str()), ("error_description", refusal.description)];
    redirect.with(error.into_iter().chain(state.map(|state| ("state", state))).chain([("iss", app.issuer.as_str())]))
}

impl AuthorizationRequest {
    /// Reads a request. Client and redirect URI come first: only when both are right is there anybody to send
    /// an error to.
    async fn parse(app: &App, params: &Params) -> Result<Self, AuthorizeError> {
        let untrusted = AuthorizeError::Untrusted;
        let client_id = params
            .one("client_id")
            .map_err(|_| untrusted("The request names several clients."))?
            .ok_or(untrusted("The request names no client: client_id is missing."))?;
        let client = app.client(client_id).await.map_err(untrusted)?;
        let asked = params.one("redirect_uri").map_err(|_| untrusted("The request has several redirect URIs."))?;
        let redirect = redirect_of(&client, asked)?;
        let (state, request) = match params.one("state") {
            Err(repeated) => (None, Err(repeated.into())),
            Ok(state) => {
                let state = state.map(Box::from);
                (state.clone(), Self::parse_trusted(app, params, client_id, &client, &redirect, state))
            }
        };
        request.map_err(|refusal| AuthorizeError::Returned { redirect, state, refusal })
    }

    fn parse_trusted(
        app: &App,
        params: &Params,
        client_id: &str,
        client: &Arc<Client>,
        redirect: &RedirectUri,
        state: Option<Box<str>>,
    ) -> Result<Self, OAuthRefusal> {
        if !client.may_use(GrantType::AuthorizationCode) {
            let description = "the client is not registered for authorization_code";
            return Err(OAuthRefusal::new(ErrorName::UnauthorizedClient, description));
        }
        refuse_what_is_not_done_here(params)?;
        let login_hint = params.one("login_hint")?.filter(|hint| is_user_name(hint));
        Ok(Self {
            client_id: client_id.into(),
            client: Arc::clone(client),
            redirect: redirect.clone(),
            state,
            challenge: challenge_of(params)?,
            scopes: scopes_of(app, client, params)?,
            resource: resource_of(params, app.settings.default_resource.as_ref())?,
            login_hint: login_hint.map(Box::from),
            key: key_of(params)?,
        })
    }
}

fn redirect_of(client: &Client, asked: Option<&str>) -> Result<RedirectUri, AuthorizeError> {
    match (asked, client.redirect_uris.as_slice()) {
        (Some(asked), registered) => registered
            .iter()
            .find_map(|registered| registered.admits(asked))
            .ok_or(AuthorizeError::Untrusted("The redirect URI is not one that the client registered.")),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(AuthorizeError::Untrusted(
            "The request has no redirect URI, and the client registered more than one: redirect_uri is missing.",
        )),
    }
}

fn refuse_what_is_not_done_here(params: &Params) -> Result<(), OAuthRefusal> {
    let refuse = |error, description| Err(OAuthRefusal::new(error, description));
    if params.one("request")?.is_some() {
        return refuse(ErrorName::RequestNotSupported, "request objects are not supported");
    }
    if params.one("request_uri")?.is_some() {
        return refuse(ErrorName::RequestUriNotSupported, "request objects are not supported");
    }
    match params.one("response_type")? {
        Some("code") => {}
        Some(_) => return refuse(ErrorName::UnsupportedResponseType, "response_type is always code"),
        None => return refuse(ErrorName::InvalidRequest, "response_type is missing"),
    }
    match params.one("response_mode")? {
        None | Some("query") => Ok(()),
        Some(_) => refuse(ErrorName::InvalidRequest, "response_mode is always query"),
    }
}

/// PKCE is required, and only with S256 (RFC 7636 section 4.3, OAuth 2.1).
fn challenge_of(params: &Params) -> Result<PkceChallenge, OAuthRefusal> {
    let refuse = |description| OAuthRefusal::new(ErrorName::InvalidRequest, description);
    let challenge = params.one("code_challenge")?.ok_or(refuse("PKCE is required: code_challenge is missing"))?;
    if params.one("code_challenge_method")? != Some("S256") {
        return Err(refuse("PKCE is required with S256: code_challenge_method must say so"));
    }
    PkceChallenge::parse(challenge).map_err(|_| refuse("code_challenge is not the base64url form of a SHA-256 hash"))
}

/// The key that the code is bound to, where the client binds it.
fn key_of(params: &Params) -> Result<Option<Thumbprint>, OAuthRefusal> {
    let Some(text) = params.one("dpop_jkt")? else { return Ok(None) };
    let refused = OAuthRefusal::new(ErrorName::InvalidRequest, "dpop_jkt is not the base64url form of a SHA-256 hash");
    dpop::parse_thumbprint(text).map(Some).ok_or(refused)
}

/// The scope that a client asks for to go on without the person (OpenID Connect Core section 11). It is granted only when it is
/// asked for, and only to clients that may refresh.
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

/// Grants those of the requested scopes that can be, and all of the server's that the client may have where none is requested
/// (RFC 6749 section 3.3).
pub(crate) fn scopes_of(app: &App, client: &Client, params: &Params) -> Result<Scopes, OAuthRefusal> {
    let refuse = |description| OAuthRefusal::new(ErrorName::InvalidScope, description);
    let supported = &app.settings.scopes;
    let possible = client.scopes.as_ref().map_or_else(|| supported.clone(), |scopes| scopes.intersection(supported));
    let Some(requested) = params.one("scope")? else {
        return Ok(possible);
    };
    let requested =
        Scopes::parse(requested).map_err(|_| refuse("scope has a character that scope names cannot have"))?;
    let mut granted = requested.intersection(&possible);
    if requested.contains(OFFLINE_ACCESS) && client.may_use(GrantType::RefreshToken) {
        granted = granted.union(&Scopes::from_names([OFFLINE_ACCESS]).unwrap_or_default());
    }
    if granted.is_empty() { Err(refuse("none of the requested scopes can be granted")) } else { Ok(granted) }
}

/// Reads the one resource that the token is for (RFC 8707 section 2).
pub(crate) fn resource_of(params: &Params, default: Option<&ResourceUri>) -> Result<ResourceUri, OAuthRefusal> {
    let refuse = |description| OAuthRefusal::new(ErrorName::InvalidTarget, description);
    let resource = params.one("resource").map_err(|_| refuse("a token is for one resource only"))?;
    match (resource, default) {
        (Some(resource), _) => ResourceUri::parse(resource)
            .map_err(|_| refuse("resource is not an absolute http or https URL without fragment and user information")),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(refuse("resource is missing: it says whom the token is for")),
    }
}
