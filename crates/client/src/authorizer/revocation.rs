//! [`Revocation`]: revokes tokens (RFC 7009).

use http::StatusCode;

use super::Authorizer;
use crate::{ClientError, ResourceToken, StartUrl, server::Server, token::endpoint::TokenEndpoint};

/// What an authorization server has revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// Both tokens.
    Complete,
    /// Only the refresh token. The server cannot revoke the access token, which stays valid until it expires.
    RefreshTokenOnly,
    /// Nothing: the server does not support the revocation of these tokens.
    NotSupported,
}

impl Authorizer {
    /// Revokes a token at its authorization server, the refresh token first (RFC 7009). Returns what was revoked.
    ///
    /// # Errors
    /// When the server cannot be reached, or rejects the request.
    pub async fn revoke(&self, start: &StartUrl, token: &ResourceToken) -> Result<Revocation, ClientError> {
        let metadata = self.fetch_server_metadata(start, token.issuer()).await?;
        let server = Server::from_metadata(&metadata, self.policy(start))?;
        let Some(url) = &server.revocation_endpoint else { return Ok(Revocation::NotSupported) };
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
            Some(client_id) => Some(self.client_by_id(&server.issuer, client_id)?),
            None => None,
        };
        let refresh_token = token.refresh_token().map(|token| ("refresh_token", token.secret()));
        let access_token = ("access_token", token.access_token().secret());
        let mut revoked = Vec::new();
        for (token_type, token) in refresh_token.into_iter().chain([access_token]) {
            let fields = vec![("token", token), ("token_type_hint", token_type)];
            let answer = endpoint.send(client.as_ref(), &fields, None).await?;
            if answer.status == StatusCode::OK {
                revoked.push(token_type);
                continue;
            }
            let error = endpoint.response_error(client.as_ref(), &fields, &answer);
            // Servers with self-contained access tokens cannot revoke them (RFC 7009 section 2.2.1).
            if !matches!(&error, ClientError::TokenRequest(error) if error.error == "unsupported_token_type") {
                return Err(error);
            }
        }
        Ok(match revoked.as_slice() {
            [.., "access_token"] => Revocation::Complete,
            ["refresh_token"] => Revocation::RefreshTokenOnly,
            _ => Revocation::NotSupported,
        })
    }
}
