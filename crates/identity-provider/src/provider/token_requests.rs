//! Requests to the token endpoint.

use std::sync::atomic::Ordering;

use http::{HeaderValue, header};
use portcullis_discovery::FetchRequest;
use portcullis_metadata::{
    Secret,
    authorization::{OAuthError, TokenResponse},
    client::client_secret_basic,
};

use super::{Callback, IdentityProvider};
use crate::{
    ClientAuthentication, ProviderError, ProviderResponse, ProviderTokens,
    endpoints::{Endpoint, Endpoints},
    token_error::{check_status, of_oauth_error},
};

/// The code and the verifier of a test: a valid value of either (RFC 7636 section 4.1), which no
/// provider has issued.
const MADE_UP: &str = "made-up-by-portcullis-to-test-this-application";

/// A field of a form.
pub(super) type Field<'a> = (&'a str, &'a str);

impl IdentityProvider {
    /// Exchanges the provider's code, after the check of `iss`.
    ///
    /// Store the [tokens](ProviderResponse::tokens) before [`identify`](Self::identify) is called.
    /// The code is used even if the future is dropped, so run it to its end.
    ///
    /// # Errors
    /// Fails if the provider rejects the code or this application, cannot be reached, or sends an
    /// invalid response, and with [`ProviderError::IssuerMismatch`], before anything is sent, if
    /// `iss` is not this provider.
    pub async fn redeem(&self, callback: &Callback<'_>) -> Result<ProviderResponse, ProviderError> {
        let endpoints = self.endpoints.get().await?;
        self.check_issuer(&endpoints, callback.iss)?;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", callback.code),
            ("redirect_uri", callback.redirect_uri),
        ];
        if endpoints.has_pkce {
            fields.push(("code_verifier", callback.verifier));
        }
        self.request_tokens(&endpoints, fields, None).await
    }

    /// Asks the token endpoint whether it accepts the credentials of this application, without a
    /// user: with a made-up code. `redirect_uri` is the one that is registered.
    ///
    /// Succeeds if the endpoint rejects only the code. Servers should authenticate the application
    /// first (RFC 6749 section 5.2), but one that reads the code first does not show whether the
    /// credentials are right.
    ///
    /// # Errors
    /// Fails with [`ProviderError::ApplicationRejected`] if the endpoint rejects the application,
    /// and if it cannot be reached or its response does not tell.
    pub async fn check_application(&self, redirect_uri: &str) -> Result<(), ProviderError> {
        let endpoints = self.endpoints.get().await?;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", MADE_UP),
            ("redirect_uri", redirect_uri),
        ];
        if endpoints.has_pkce {
            fields.push(("code_verifier", MADE_UP));
        }
        match self.request_tokens(&endpoints, fields, None).await {
            Err(ProviderError::SignInEnded) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(ProviderError::ResponseInvalid("code.made_up")),
        }
    }

    /// Refreshes the tokens. If the response has no refresh token, the old one is kept.
    ///
    /// Store the [tokens](ProviderResponse::tokens) before [`identify`](Self::identify) is called.
    /// The provider may end the old tokens even if the future is dropped, so run it to its end, and
    /// run one refresh at a time for each sign-in.
    ///
    /// # Errors
    /// Fails with [`ProviderError::SignInEnded`] if the provider rejects the refresh token, and
    /// with an error that [is temporary](ProviderError::is_temporary) if there is none, or if the
    /// provider cannot be reached, rejects this application or sends an invalid response.
    pub async fn refresh(
        &self,
        tokens: &ProviderTokens,
    ) -> Result<ProviderResponse, ProviderError> {
        let refresh_token = tokens
            .refresh_token
            .as_ref()
            .ok_or(ProviderError::ResponseInvalid("refresh_token.missing"))?;
        let endpoints = self.endpoints.get().await?;
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.secret()),
        ];
        let scopes;
        if self.profile.repeats_scope {
            scopes = self.requested_scopes(&endpoints);
            fields.push(("scope", &scopes));
        }
        self.request_tokens(&endpoints, fields, Some(refresh_token))
            .await
    }

    /// Sends a token request. `previous` is the refresh token that it contains.
    ///
    /// If the provider lists two methods of authentication and rejects the first one, the request
    /// is sent once more with the other one: at many providers, an application is registered for
    /// one of them. A code or token is not used before the application has authenticated.
    async fn request_tokens(
        &self,
        endpoints: &Endpoints,
        fields: Vec<Field<'_>>,
        previous: Option<&Secret>,
    ) -> Result<ProviderResponse, ProviderError> {
        let rejected = ProviderError::ApplicationRejected("invalid_client");
        match self.send_request(endpoints, fields.clone(), previous).await {
            Err(error) if error == rejected && endpoints.other_authentication.is_some() => {
                self.uses_other_authentication
                    .fetch_xor(true, Ordering::Relaxed);
                self.send_request(endpoints, fields, previous).await
            }
            result => result,
        }
    }

    async fn send_request<'a>(
        &'a self,
        endpoints: &Endpoints,
        fields: Vec<Field<'a>>,
        previous: Option<&Secret>,
    ) -> Result<ProviderResponse, ProviderError> {
        let request = self.authenticated_form(&endpoints.token, endpoints, fields);
        let now = self.clock.now();
        let response = self.fetch.fetch(request).await?;
        check_status(&response)?;
        // GitHub sends errors with status 200.
        if let Ok(error) = OAuthError::parse(&response.body) {
            return Err(of_oauth_error(&error));
        }
        if !response.status.is_success() {
            return Err(ProviderError::ResponseInvalid("status.client_error"));
        }
        let response = TokenResponse::parse(&response.body)
            .map_err(|error| ProviderError::ResponseInvalid(error.code()))?;
        ProviderResponse::new(response, previous, now)
    }

    /// Returns a form with which this application authenticates.
    pub(super) fn authenticated_form<'a>(
        &'a self,
        endpoint: &Endpoint,
        endpoints: &Endpoints,
        mut fields: Vec<Field<'a>>,
    ) -> FetchRequest {
        let (client_id, secret) = (&self.settings.client_id, &self.settings.client_secret);
        let form = |fields| FetchRequest::post_form(endpoint.url.clone(), fields, endpoint.policy);
        let uses_other = self.uses_other_authentication.load(Ordering::Relaxed);
        let other = endpoints.other_authentication.filter(|_| uses_other);
        match other.unwrap_or(endpoints.client_authentication) {
            ClientAuthentication::Post => {
                fields.push(("client_id", client_id));
                fields.push(("client_secret", secret.secret()));
                form(fields)
            }
            ClientAuthentication::Basic => {
                let credentials = client_secret_basic(client_id, secret)
                    .unwrap_or(HeaderValue::from_static("Basic"));
                form(fields).header(header::AUTHORIZATION, credentials)
            }
        }
    }
}
