//! The revocation of tokens at the provider.

use http::{Method, header};
use portcullis_discovery::FetchRequest;
use portcullis_metadata::{Secret, authorization::OAuthError, client::client_secret_basic};
use serde_json::json;

use super::{IdentityProvider, user_api::add_github_headers};
use crate::{
    ProviderError, ProviderTokens,
    endpoints::{Endpoint, Endpoints},
    kinds::Protocol,
    token_error::{check_status, of_oauth_error},
};

impl IdentityProvider {
    /// Revokes the tokens at the provider, so that a copy of them is useless. Does nothing if the
    /// provider has no revocation endpoint, or if revoking them would also end other sign-ins of
    /// the user.
    ///
    /// # Errors
    /// Fails if the provider cannot be reached or rejects the request. The tokens may still be
    /// valid then.
    pub async fn revoke(&self, tokens: &ProviderTokens) -> Result<(), ProviderError> {
        if !self.profile.revokes_one_sign_in {
            return Ok(());
        }
        let endpoints = self.endpoints.get().await?;
        let Some(endpoint) = &endpoints.revocation else {
            return Ok(());
        };
        match self.profile.protocol {
            Protocol::OpenId => self.revoke_by_form(tokens, endpoint, &endpoints).await,
            Protocol::GitHub => self.delete_token(tokens, endpoint).await,
        }
    }

    /// Revokes the refresh token, with which the provider revokes the access token, or the access
    /// token if there is no other (RFC 7009).
    async fn revoke_by_form<'a>(
        &'a self,
        tokens: &'a ProviderTokens,
        endpoint: &Endpoint,
        endpoints: &Endpoints,
    ) -> Result<(), ProviderError> {
        let (token, hint) = match (&tokens.refresh_token, &tokens.access_token) {
            (Some(token), _) => (token, "refresh_token"),
            (None, Some(token)) => (token, "access_token"),
            (None, None) => return Ok(()),
        };
        let fields = vec![("token", token.secret()), ("token_type_hint", hint)];
        let request = self.authenticated_form(endpoint, endpoints, fields);
        let response = self.fetch.fetch(request).await?;
        check_status(&response)?;
        if response.status.is_success() {
            return Ok(());
        }
        match OAuthError::parse(&response.body) {
            Ok(error) => Err(of_oauth_error(&error)),
            Err(_) => Err(ProviderError::ResponseInvalid("revocation.status")),
        }
    }

    /// Deletes the access token at GitHub, and with it the refresh token of a GitHub App.
    async fn delete_token(
        &self,
        tokens: &ProviderTokens,
        endpoint: &Endpoint,
    ) -> Result<(), ProviderError> {
        let Some(token) = &tokens.access_token else {
            return Ok(());
        };
        let response = self.fetch.fetch(self.deletion(token, endpoint)).await?;
        check_status(&response)?;
        match response.status.as_u16() {
            // The token is not valid any more, or never was.
            204 | 404 | 422 => Ok(()),
            401 | 403 => Err(ProviderError::ApplicationRejected("revocation.status")),
            _ => Err(ProviderError::ResponseInvalid("revocation.status")),
        }
    }

    fn deletion(&self, token: &Secret, endpoint: &Endpoint) -> FetchRequest {
        let body = json!({ "access_token": token.secret() }).to_string();
        let mut request = FetchRequest::post_json(endpoint.url.clone(), body, endpoint.policy);
        request.method = Method::DELETE;
        add_github_headers(&mut request.headers);
        let credentials =
            client_secret_basic(&self.settings.client_id, &self.settings.client_secret);
        if let Some(credentials) = credentials {
            request.headers.insert(header::AUTHORIZATION, credentials);
        }
        request
    }
}
