//! [`Revocation`]: revokes tokens (RFC 7009).

use http::StatusCode;

use super::Authorizer;
use crate::{
    ClientCredentials, ClientError, ResourceToken, StartUrl, server::Server,
    token::endpoint::TokenEndpoint,
};

/// What an authorization server has revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// The access token and, if there is one, the refresh token.
    Complete,
    /// Only the refresh token. The server cannot revoke the access token, which stays valid until
    /// it expires.
    RefreshTokenOnly,
    /// Not the refresh token, or the access token if there is no refresh token: the server does not
    /// support that.
    NotSupported,
}

impl Authorizer {
    /// Revokes a token at its authorization server, the refresh token first (RFC 7009). Returns
    /// what was revoked.
    ///
    /// # Errors
    /// When the server cannot be reached, or rejects the request.
    pub async fn revoke(
        &self,
        start: &StartUrl,
        token: &ResourceToken,
    ) -> Result<Revocation, ClientError> {
        let metadata = self.fetch_server_metadata(start, token.issuer()).await?;
        let server = Server::from_metadata(&metadata, self.policy(start))?;
        let Some(url) = &server.revocation_endpoint else {
            return Ok(Revocation::NotSupported);
        };
        let endpoint = TokenEndpoint {
            fetch: &*self.fetch,
            clock: &*self.clock,
            method: self.settings.token_auth_method,
            name: "revocation",
            url,
            policy: server.policy.of(url),
            issuer: &server.issuer,
            authentication_methods: metadata
                .revocation_endpoint_auth_methods_supported
                .as_deref()
                .or(server.authentication_methods.as_deref()),
        };
        let client = match token.client_id() {
            Some(client_id) => Some(self.client_by_id(start, &server.issuer, client_id).await?),
            None => None,
        };
        let refresh_token = match token.refresh_token() {
            Some(token) => {
                Some(is_revoked(&endpoint, client.as_ref(), "refresh_token", token.secret()).await?)
            }
            None => None,
        };
        let access_token = token.access_token().secret();
        let access_token =
            is_revoked(&endpoint, client.as_ref(), "access_token", access_token).await?;
        Ok(match (refresh_token, access_token) {
            (None | Some(true), true) => Revocation::Complete,
            (Some(true), false) => Revocation::RefreshTokenOnly,
            (None, false) | (Some(false), _) => Revocation::NotSupported,
        })
    }
}

/// Revokes one token. Returns false if the server cannot revoke tokens of this type, such as
/// self-contained access tokens (RFC 7009 section 2.2.1).
async fn is_revoked(
    endpoint: &TokenEndpoint<'_>,
    client: Option<&ClientCredentials>,
    token_type: &str,
    token: &str,
) -> Result<bool, ClientError> {
    let fields = vec![("token", token), ("token_type_hint", token_type)];
    let answer = endpoint.send(client, &fields, None).await?;
    if answer.status == StatusCode::OK {
        return Ok(true);
    }
    match endpoint.response_error(&answer) {
        ClientError::TokenRequest(error) if error.error == "unsupported_token_type" => Ok(false),
        error => Err(error),
    }
}
