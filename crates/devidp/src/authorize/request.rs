//! [`AuthorizationRequest`]: a valid authorization request.

use std::sync::Arc;

use http::HeaderMap;
use portcullis_authorization_server::{
    DuplicateParameter, ErrorCode, ErrorResponse, Params,
    client::{Client, GrantType, RedirectUri},
};
use portcullis_metadata::{Scopes, authorization::PkceChallenge};

use crate::{
    authentication::dpop::{self, Thumbprint},
    authorize::{
        audience::parse_audience,
        scopes::{OFFLINE_ACCESS, grant_scopes},
        user::is_user_name,
    },
    clients::registry::Clients,
    config::Config,
    providers::profile::RefreshTokenRule,
};

/// A valid authorization request (RFC 6749 section 4.1.1).
#[derive(Clone)]
pub(crate) struct AuthorizationRequest {
    pub(crate) client_id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) redirect: RedirectUri,
    /// The `state` that the response repeats.
    pub(crate) state: Option<Box<str>>,
    /// The PKCE challenge, which is always S256.
    pub(crate) challenge: PkceChallenge,
    /// The scopes to grant.
    pub(crate) scopes: Scopes,
    /// The audience of the tokens, if they have one.
    pub(crate) audience: Option<Box<str>>,
    /// Whether the client requests a refresh token.
    pub(crate) refresh: RefreshRequest,
    /// The user name that the consent page suggests, if it is valid.
    pub(crate) login_hint: Option<Box<str>>,
    /// The DPoP key to which the code is bound (RFC 9449 section 10).
    pub(crate) key: Option<Thumbprint>,
}

/// Why a request is rejected, and to whom the error is sent.
pub(crate) enum AuthorizeError {
    /// The redirect URI is not trusted. The error is displayed to the user.
    Untrusted(&'static str),
    /// The error is sent to the client's redirect URI.
    Returned {
        redirect: RedirectUri,
        state: Option<Box<str>>,
        error: ErrorResponse,
    },
}

impl AuthorizationRequest {
    /// Parses a request. The client and the redirect URI are validated first, because errors can be
    /// sent to the redirect URI only if both are valid.
    pub(super) async fn parse(
        config: &Config,
        clients: &Clients,
        params: &Params,
        headers: &HeaderMap,
    ) -> Result<Self, AuthorizeError> {
        let untrusted = AuthorizeError::Untrusted;
        let client_id = params
            .get("client_id")
            .map_err(|_| untrusted("The request identifies several clients."))?
            .ok_or(untrusted(
                "The request does not identify a client: client_id is missing.",
            ))?;
        let client = clients
            .find(client_id, headers)
            .await
            .map_err(|error| untrusted(error.description))?;
        let requested = params
            .get("redirect_uri")
            .map_err(|_| untrusted("The request has several redirect URIs."))?;
        let redirect = select_redirect_uri(&client, requested)?;
        let (state, request) = match params.get("state") {
            Err(duplicate) => (None, Err(duplicate.into())),
            Ok(state) => {
                let state = state.map(Box::from);
                (
                    state.clone(),
                    Self::parse_trusted(config, params, client_id, &client, &redirect, state),
                )
            }
        };
        request.map_err(|error| AuthorizeError::Returned {
            redirect,
            state,
            error,
        })
    }

    /// Parses the parameters whose errors are sent to the client.
    fn parse_trusted(
        config: &Config,
        params: &Params,
        client_id: &str,
        client: &Arc<Client>,
        redirect: &RedirectUri,
        state: Option<Box<str>>,
    ) -> Result<Self, ErrorResponse> {
        if !client.may_use(GrantType::AuthorizationCode) {
            let description = "the client is not registered for authorization_code";
            return Err(ErrorResponse::new(
                ErrorCode::UnauthorizedClient,
                description,
            ));
        }
        reject_unsupported_parameters(params)?;
        let scopes = grant_scopes(config, client, params)?;
        let login_hint = params.get("login_hint")?.filter(|hint| is_user_name(hint));
        Ok(Self {
            client_id: client_id.into(),
            client: Arc::clone(client),
            redirect: redirect.clone(),
            state,
            challenge: parse_challenge(params)?,
            audience: parse_audience(config, params)?,
            refresh: RefreshRequest::parse(config, client, params, &scopes)?,
            scopes,
            login_hint: login_hint.map(Box::from),
            key: parse_dpop_key(params)?,
        })
    }
}

/// Returns the requested redirect URI if the client registered it; the only registered one if none
/// is requested.
fn select_redirect_uri(
    client: &Client,
    requested: Option<&str>,
) -> Result<RedirectUri, AuthorizeError> {
    match (requested, client.redirect_uris.as_slice()) {
        (Some(requested), registered) => registered
            .iter()
            .find_map(|registered| registered.match_requested(requested))
            .ok_or(AuthorizeError::Untrusted(
                "The redirect URI is not one that the client registered.",
            )),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(AuthorizeError::Untrusted(
            "The client registered no redirect URI, so it cannot sign users in.",
        )),
        (None, _) => Err(AuthorizeError::Untrusted(
            "The request has no redirect URI, and the client registered more than one: redirect_uri is missing.",
        )),
    }
}

/// Rejects request objects, and other response types and modes than those of the code flow.
fn reject_unsupported_parameters(params: &Params) -> Result<(), ErrorResponse> {
    let reject = |error, description| Err(ErrorResponse::new(error, description));
    if params.get("request")?.is_some() {
        return reject(
            ErrorCode::RequestNotSupported,
            "request objects are not supported",
        );
    }
    if params.get("request_uri")?.is_some() {
        return reject(
            ErrorCode::RequestUriNotSupported,
            "request objects are not supported",
        );
    }
    match params.get("response_type")? {
        Some("code") => {}
        Some(_) => {
            return reject(
                ErrorCode::UnsupportedResponseType,
                "response_type must be code",
            );
        }
        None => return reject(ErrorCode::InvalidRequest, "response_type is missing"),
    }
    match params.get("response_mode")? {
        None | Some("query") => Ok(()),
        Some(_) => reject(ErrorCode::InvalidRequest, "response_mode must be query"),
    }
}

/// Parses the PKCE challenge. PKCE with S256 is required (RFC 7636 section 4.3, OAuth 2.1).
fn parse_challenge(params: &Params) -> Result<PkceChallenge, ErrorResponse> {
    let reject = |description| ErrorResponse::new(ErrorCode::InvalidRequest, description);
    let challenge = params
        .get("code_challenge")?
        .ok_or(reject("PKCE is required: code_challenge is missing"))?;
    if params.get("code_challenge_method")? != Some("S256") {
        return Err(reject(
            "PKCE is required with S256: code_challenge_method must be S256",
        ));
    }
    PkceChallenge::parse(challenge)
        .map_err(|_| reject("code_challenge must be a SHA-256 hash in base64url"))
}

/// Parses the DPoP key to which the client binds the code, if any.
fn parse_dpop_key(params: &Params) -> Result<Option<Thumbprint>, ErrorResponse> {
    let Some(thumbprint) = params.get("dpop_jkt")? else {
        return Ok(None);
    };
    let error = ErrorResponse::new(
        ErrorCode::InvalidRequest,
        "dpop_jkt must be a SHA-256 hash in base64url",
    );
    dpop::parse_thumbprint(thumbprint).map(Some).ok_or(error)
}

/// Whether a client requests a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefreshRequest {
    No,
    Yes,
    /// Only if the user never approved this client before.
    FirstApproval,
}

impl RefreshRequest {
    /// Returns whether the client requests a refresh token and may use it.
    pub(crate) fn parse(
        config: &Config,
        client: &Client,
        params: &Params,
        scopes: &Scopes,
    ) -> Result<Self, DuplicateParameter> {
        let is_requested = match config.profile.refresh_tokens {
            RefreshTokenRule::OfflineAccess => scopes.contains(OFFLINE_ACCESS),
            RefreshTokenRule::Always => true,
            RefreshTokenRule::Never => false,
            RefreshTokenRule::AccessType => params.get("access_type")? == Some("offline"),
        };
        if !is_requested || !client.may_use(GrantType::RefreshToken) {
            return Ok(Self::No);
        }
        let asks_again = params
            .get("prompt")?
            .is_some_and(|prompt| prompt.split(' ').any(|value| value == "consent"));
        let depends_on_approval =
            matches!(config.profile.refresh_tokens, RefreshTokenRule::AccessType) && !asks_again;
        Ok(if depends_on_approval {
            Self::FirstApproval
        } else {
            Self::Yes
        })
    }
}
