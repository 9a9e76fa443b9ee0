//! [`PendingRequest`]: an authorization request while its user answers and signs in.

use portcullis_authorization_server::{
    AuthorizationCode, ErrorCode, ErrorResponse, Grant,
    authorization::{AuthorizationRequest, described_error_location, error_location},
    client::RedirectUri,
};
use portcullis_metadata::{Issuer, Scopes, authorization::PkceChallenge};
use serde::{Deserialize, Serialize};
use url::Url;

/// A valid authorization request while its user answers and signs in. Redirect URI and name are
/// those that the client had when the request arrived (DO6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingRequest {
    pub(crate) client_id: Box<str>,
    pub(crate) client_name: Option<Box<str>>,
    /// The host of the client's metadata document, if it has one.
    pub(crate) document_host: Option<Box<str>>,
    pub(crate) redirect_uri: Box<str>,
    pub(crate) state: Option<Box<str>>,
    challenge: Box<str>,
    pub(crate) scopes: Box<str>,
    pub(crate) audience: Option<Box<str>>,
}

impl PendingRequest {
    pub(crate) fn new(request: &AuthorizationRequest) -> Self {
        Self {
            client_id: request.client_id.clone(),
            client_name: request.client.name.clone(),
            document_host: document_host(request),
            redirect_uri: request.redirect.as_str().into(),
            state: request.state.clone(),
            challenge: request.challenge.as_str().into(),
            scopes: request.scopes.as_str().into(),
            audience: request.audience.clone(),
        }
    }

    pub(crate) fn scopes(&self) -> Scopes {
        Scopes::parse(&self.scopes).unwrap_or_default()
    }

    /// Returns whether a consent may be remembered: only for a client with a metadata document, and
    /// a redirect URI that one server alone receives (CO5).
    pub(crate) fn may_be_remembered(&self, redirect: &RedirectUri) -> bool {
        self.document_host.is_some() && redirect.scheme() == "https" && !redirect.is_loopback()
    }

    /// Returns the redirect URI. `None` if it cannot be parsed any more.
    pub(crate) fn redirect(&self) -> Option<RedirectUri> {
        RedirectUri::parse_registered(&self.redirect_uri).ok()
    }

    /// Returns the code of a grant for this request.
    pub(crate) fn code(&self, grant: Grant) -> Option<AuthorizationCode> {
        Some(AuthorizationCode {
            grant,
            redirect_uri: self.redirect_uri.clone(),
            challenge: PkceChallenge::parse(&self.challenge).ok()?,
            key: None,
            is_refreshable: true,
        })
    }

    /// Returns the URL of the response with a code (RFC 6749 section 4.1.2).
    pub(crate) fn code_location(
        &self,
        redirect: &RedirectUri,
        code: &str,
        issuer: &Issuer,
    ) -> String {
        let state = self.state.as_deref().map(|state| ("state", state));
        let params = [("code", code)].into_iter().chain(state);
        redirect.with_params(params.chain([("iss", issuer.as_str())]))
    }

    /// Returns the URL of the response with an error (RFC 6749 section 4.1.2.1).
    pub(crate) fn error_location(
        &self,
        redirect: &RedirectUri,
        error: ErrorResponse,
        issuer: &Issuer,
    ) -> String {
        error_location(redirect, self.state.as_deref(), error, Some(issuer))
    }

    /// As [`error_location`](Self::error_location), with a description for this response.
    pub(crate) fn described_error_location(
        &self,
        redirect: &RedirectUri,
        code: ErrorCode,
        description: &str,
        issuer: &Issuer,
    ) -> String {
        let state = self.state.as_deref();
        described_error_location(redirect, state, code, description, Some(issuer))
    }
}

fn document_host(request: &AuthorizationRequest) -> Option<Box<str>> {
    if !request.client.is_document {
        return None;
    }
    let url = Url::parse(&request.client_id).ok()?;
    url.host_str().map(Box::from)
}
