//! Refresh and revocation.

use http::StatusCode;

use super::Authorizer;
use crate::{
    ClientError, ResourceToken, StartUrl,
    authorization::server::Server,
    provider::{RequestProfile, refresh_scopes},
    token::endpoint::TokenEndpoint,
};

/// What an authorization server has revoked of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// All of it.
    Complete,
    /// The refresh token. The access token is of a kind that the server cannot revoke, and lives until its end.
    RefreshTokenOnly,
    /// Nothing: the server revokes no tokens, or none of these kinds.
    NotSupported,
}

impl Authorizer {
    /// Gets the token that takes this one's place (RFC 6749 section 6). It asks for the same scopes and resource.
    pub(crate) async fn refresh(&self, start: &StartUrl, token: &ResourceToken) -> Result<ResourceToken, ClientError> {
        let issuer = token.issuer();
        let no_client = || ClientError::NoRegistration { issuer: issuer.clone() };
        let (Some(refresh_token), Some(client_id)) = (token.refresh_token(), token.client_id()) else {
            return Err(no_client());
        };
        let client = self.client_named(issuer, client_id)?;
        let metadata = self.server(start, issuer).await?;
        let server = Server::from_metadata(&metadata, self.policy(start))?;
        let scope = refresh_scopes(token.asked(), token.scopes()).to_string();
        let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.secret())];
        if !token.is_unbound() {
            fields.push(("resource", token.resource().as_str()));
        } else if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let endpoint = self.token_endpoint(&server);
        let response = endpoint.token(Some(&client), &fields, token.binding().as_deref()).await?;
        let mut settings = self.settings.provider.clone();
        settings.omit_resource = token.is_unbound();
        RequestProfile::new(&settings, &metadata, token.resource()).check_response(&response, start, issuer)?;
        token.refreshed(response, self.clock.now())
    }

    /// Has the authorization server revoke a token, its refresh token first (RFC 7009), and says what it revoked.
    ///
    /// # Errors
    /// When the server cannot be asked, or refuses.
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
            Some(client_id) => Some(self.client_named(&server.issuer, client_id)?),
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
            let refusal = endpoint.refusal(&answer);
            // Servers that keep no access tokens cannot revoke one (RFC 7009 section 2.2.1).
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
