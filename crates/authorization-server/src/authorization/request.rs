//! [`AuthorizationRequest`]: a valid authorization request.

use std::sync::Arc;

use http::HeaderMap;
use portcullis_metadata::{Issuer, Scopes, authorization::PkceChallenge};

use crate::{
    client::{Client, ClientDirectory, GrantType, RedirectUri},
    error::{ErrorCode, ErrorResponse},
    params::Params,
    policy::{Policy, RefreshRequest},
};

/// The thumbprint of a client's DPoP key (RFC 9449 section 6.1).
pub type Thumbprint = Box<str>;

/// The length of a SHA-256 hash in base64url.
const THUMBPRINT_CHARS: usize = 43;

/// A valid authorization request (RFC 6749 section 4.1.1).
#[derive(Clone, Debug)]
pub struct AuthorizationRequest {
    /// The identifier of the client.
    pub client_id: Box<str>,
    /// The client as it was when the request arrived.
    pub client: Arc<Client>,
    /// The redirect URI, which the client registered.
    pub redirect: RedirectUri,
    /// The `state` that the response repeats.
    pub state: Option<Box<str>>,
    /// The PKCE challenge, which is always S256.
    pub challenge: PkceChallenge,
    /// The scopes to grant.
    pub scopes: Scopes,
    /// The audience of the tokens, if they have one.
    pub audience: Option<Box<str>>,
    /// Whether the client requests a refresh token.
    pub refresh: RefreshRequest,
    /// The user name that the client suggests. It is not validated.
    pub login_hint: Option<Box<str>>,
    /// The DPoP key to which the code is bound (RFC 9449 section 10).
    pub key: Option<Thumbprint>,
    /// The `nonce` that the ID token repeats (OpenID Connect Core section 3.1.2.1).
    pub nonce: Option<Box<str>>,
}

/// Why a request is rejected, and to whom the error is sent (RFC 6749 section 4.1.2.1).
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// The client or the redirect URI is not valid. The browser must not be redirected: the
    /// sentence is displayed to the user.
    #[error("{0}")]
    Untrusted(&'static str),
    /// The client cannot be found now, for the reason in this sentence. Show it to the user.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The error is sent to the client's redirect URI.
    #[error("{error}")]
    Returned {
        /// The redirect URI, which the client registered.
        redirect: RedirectUri,
        /// The `state` of the request.
        state: Option<Box<str>>,
        /// The error.
        error: ErrorResponse,
    },
}

impl AuthorizationRequest {
    /// Returns the URL of the response with a code (RFC 6749 section 4.1.2). `extra` are further
    /// parameters. `issuer` identifies the server (RFC 9207).
    pub fn code_location<'a>(
        &'a self,
        code: &'a str,
        extra: impl IntoIterator<Item = (&'a str, &'a str)>,
        issuer: Option<&'a Issuer>,
    ) -> String {
        let state = self.state.as_deref().map(|state| ("state", state));
        let params = [("code", code)].into_iter().chain(state).chain(extra);
        self.redirect
            .with_params(params.chain(issuer_param(issuer)))
    }

    /// Checks again whether the redirect URI can be used. A server that keeps the request while the
    /// user answers must do so before it issues a code or an error.
    ///
    /// # Errors
    /// Fails with [`AuthorizationError::Untrusted`] when the policy no longer accepts it.
    pub fn check_redirect(&self, policy: &impl Policy) -> Result<(), AuthorizationError> {
        check_redirect(policy, &self.redirect)
    }

    /// Parses a request. The client and the redirect URI are validated first, because errors can be
    /// sent to the redirect URI only if both are valid (RFC 9700 section 4.11.2).
    ///
    /// PKCE with S256 is required (RFC 7636, RFC 9700 section 2.1.1). Request objects, response
    /// types other than `code` and response modes other than `query` are rejected. Does not
    /// identify the user.
    ///
    /// # Errors
    /// Fails when the client is unknown, or a parameter is missing, invalid or repeated.
    pub async fn parse(
        policy: &impl Policy,
        clients: &impl ClientDirectory,
        params: &Params,
        headers: &HeaderMap,
    ) -> Result<Self, AuthorizationError> {
        let untrusted = AuthorizationError::Untrusted;
        let client_id = params
            .get("client_id")
            .map_err(|_| untrusted("The request identifies several clients."))?
            .ok_or(untrusted(
                "The request does not identify a client: client_id is missing.",
            ))?;
        let client = clients
            .find(client_id, headers)
            .await
            .map_err(|error| match error.code {
                ErrorCode::TemporarilyUnavailable => {
                    AuthorizationError::Unavailable(error.description)
                }
                _ => untrusted(error.description),
            })?;
        let requested = params
            .get("redirect_uri")
            .map_err(|_| untrusted("The request has several redirect URIs."))?;
        let redirect = select_redirect_uri(&client, requested)?;
        check_redirect(policy, &redirect)?;
        let (state, request) = match params.get("state") {
            Err(duplicate) => (None, Err(duplicate.into())),
            Ok(state) => {
                let state = state.map(Box::from);
                (
                    state.clone(),
                    Self::parse_trusted(policy, params, client_id, &client, &redirect, state),
                )
            }
        };
        request.map_err(|error| AuthorizationError::Returned {
            redirect,
            state,
            error,
        })
    }

    /// Parses the parameters whose errors are sent to the client.
    fn parse_trusted(
        policy: &impl Policy,
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
        let scopes = policy.scopes(client, params)?;
        let login_hint = params.get("login_hint")?;
        Ok(Self {
            client_id: client_id.into(),
            client: Arc::clone(client),
            redirect: redirect.clone(),
            state,
            challenge: parse_challenge(params)?,
            audience: policy.audience(params)?,
            refresh: policy.refresh(client, params, &scopes)?,
            scopes,
            login_hint: login_hint.map(Box::from),
            key: parse_dpop_key(params)?,
            nonce: params.get("nonce")?.map(Box::from),
        })
    }
}

/// Returns the requested redirect URI if the client registered it; the only registered one if none
/// is requested.
fn select_redirect_uri(
    client: &Client,
    requested: Option<&str>,
) -> Result<RedirectUri, AuthorizationError> {
    match (requested, client.redirect_uris.as_slice()) {
        (Some(requested), registered) => registered
            .iter()
            .find_map(|registered| registered.match_requested(requested))
            .ok_or(AuthorizationError::Untrusted(
                "The redirect URI is not one that the client registered.",
            )),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(AuthorizationError::Untrusted(
            "The client registered no redirect URI, so it cannot sign users in.",
        )),
        (None, _) => Err(AuthorizationError::Untrusted(
            "The request has no redirect URI, and the client registered more than one: redirect_uri is missing.",
        )),
    }
}

fn check_redirect(policy: &impl Policy, redirect: &RedirectUri) -> Result<(), AuthorizationError> {
    if policy.is_usable_redirect(redirect) {
        return Ok(());
    }
    Err(AuthorizationError::Untrusted(
        "The client's redirect URI is not allowed on this server. If you trust the client, ask the operator of this server to add the host of the URI to the list of redirect hosts.",
    ))
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

/// Parses the DPoP key to which the client binds the code, if any (RFC 9449 section 10).
fn parse_dpop_key(params: &Params) -> Result<Option<Thumbprint>, ErrorResponse> {
    let Some(thumbprint) = params.get("dpop_jkt")? else {
        return Ok(None);
    };
    let error = ErrorResponse::new(
        ErrorCode::InvalidRequest,
        "dpop_jkt must be a SHA-256 hash in base64url",
    );
    let is_valid = thumbprint.len() == THUMBPRINT_CHARS
        && thumbprint
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_valid {
        Ok(Some(thumbprint.into()))
    } else {
        Err(error)
    }
}

/// Returns the URL of the response with an error (RFC 6749 section 4.1.2.1). `issuer` identifies
/// the server (RFC 9207).
pub fn error_location(
    redirect: &RedirectUri,
    state: Option<&str>,
    error: ErrorResponse,
    issuer: Option<&Issuer>,
) -> String {
    described_error_location(redirect, state, error.code, error.description, issuer)
}

/// As [`error_location`], with a description that is made for this response, such as one with a
/// reference. It must have printable ASCII characters except `"` and `\\` only (RFC 6749 section
/// 4.1.2.1).
pub fn described_error_location(
    redirect: &RedirectUri,
    state: Option<&str>,
    code: ErrorCode,
    description: &str,
    issuer: Option<&Issuer>,
) -> String {
    let params = [("error", code.as_str()), ("error_description", description)];
    redirect.with_params(
        params
            .into_iter()
            .chain(state.map(|state| ("state", state)))
            .chain(issuer_param(issuer)),
    )
}

/// Returns the parameter `iss` of an authorization response (RFC 9207 section 2).
fn issuer_param(issuer: Option<&Issuer>) -> Option<(&'static str, &str)> {
    issuer.map(|issuer| ("iss", issuer.as_str()))
}
