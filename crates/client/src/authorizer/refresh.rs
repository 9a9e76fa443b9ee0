//! Refresh and revocation.

use http::StatusCode;
use portcullis_metadata::Scopes;

use super::Authorizer;
use crate::{
    ClientError, ResourceToken, StartUrl,
    authorization::server::Server,
    provider::{RequestProfile, refresh_scopes},
    token::endpoint::TokenEndpoint,
};

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
    /// Obtains the token that replaces this one (RFC 6749 section 6), with the same resource, and with the same scopes unless
    /// others are given.
    pub(crate) async fn refresh(
        &self,
        start: &StartUrl,
        token: &ResourceToken,
        scopes: Option<&Scopes>,
    ) -> Result<ResourceToken, ClientError> {
        let issuer = token.issuer();
        let no_client = || ClientError::NoRegistration { issuer: issuer.clone() };
        let (Some(refresh_token), Some(client_id)) = (token.refresh_token(), token.client_id()) else {
            return Err(no_client());
        };
        let client = self.client_by_id(issuer, client_id)?;
        let metadata = self.server(start, issuer).await?;
        let server = Server::from_metadata(&metadata, self.policy(start))?;
        let same = || refresh_scopes(token.asked(), token.scopes());
        let scope = scopes.cloned().unwrap_or_else(same).to_string();
        let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.secret())];
        if !token.is_unbound() {
            fields.push(("resource", token.resource().as_str()));
        }
        if (scopes.is_some() || token.is_unbound()) && !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let endpoint = self.token_endpoint(&server);
        let response = endpoint.token(Some(&client), &fields, token.binding().as_deref()).await?;
        let mut settings = self.settings.provider.clone();
        settings.omit_resource = token.is_unbound();
        RequestProfile::new(&settings, &metadata, token.resource()).check_response(&response, start, issuer)?;
        token.refreshed(response, scopes, self.clock.now())
    }

    /// Revokes a token at its authorization server, the refresh token first (RFC 7009). Returns what was revoked.
    ///
    /// # Errors
    /// When the server cannot be reached, or rejects the request.
    pub async fn revoke(&self, start: &StartUrl, token: &ResourceToken) -> Result<Revocation, ClientError> {
        let metadata = self.server(start, token.issuer()).await?;
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
        for (kind, text) in refresh_token.into_iter().chain([access_token]) {
            let fields = vec![("token", text), ("token_type_hint", kind)];
            let answer = endpoint.send(client.as_ref(), &fields, None).await?;
            if answer.status == StatusCode::OK {
                revoked.push(kind);
                continue;
            }
            let refusal = endpoint.refusal(client.as_ref(), &fields, &answer);
            // Servers with self-contained access tokens cannot revoke them (RFC 7009 section 2.2.1).
            if !matches!(&refusal, ClientError::TokenRequest(error) if error.error == "unsupported_token_type") {
                return Err(refusal);
            }
        }
        Ok(match revoked.as_slice() {
            [.., "access_token"] => Revocation::Complete,
            ["refresh_token"] => Revocation::RefreshTokenOnly,
            _ => Revocation::NotSupported,
        })
    }
}
