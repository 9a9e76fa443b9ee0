//! The authorization request, and the check of who answers it.

use portcullis_metadata::{
    Issuer,
    authorization::{PkceChallenge, check_response_issuer},
};
use url::Url;

use super::{IdentityProvider, SignInRequest};
use crate::{
    ProviderError,
    endpoints::Endpoints,
    kinds::{OFFLINE_ACCESS, Protocol},
};

impl IdentityProvider {
    /// Returns the URL to which the browser is sent.
    ///
    /// # Errors
    /// Fails if the provider's metadata cannot be fetched or is invalid.
    pub async fn authorization_url(
        &self,
        request: &SignInRequest<'_>,
    ) -> Result<Url, ProviderError> {
        let endpoints = self.endpoints.get().await?;
        let mut url = endpoints.authorization.clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", request.redirect_uri)
            .append_pair("state", request.state);
        let scopes = self.requested_scopes(&endpoints);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes);
        }
        if self.profile.protocol == Protocol::OpenId {
            query.append_pair("nonce", request.nonce);
        }
        if endpoints.has_pkce {
            query
                .append_pair("code_challenge", request.challenge.as_str())
                .append_pair("code_challenge_method", PkceChallenge::METHOD);
        }
        let has_offline_access = scopes.split(' ').any(|scope| scope == OFFLINE_ACCESS);
        if self.profile.prompts_consent && has_offline_access {
            query.append_pair("prompt", "consent");
        }
        for (name, value) in self.profile.parameters {
            query.append_pair(name, value);
        }
        drop(query);
        Ok(url)
    }

    /// Checks `iss` of an authorization response, which may be an error (RFC 9207 section 2.4).
    /// Call it before any other parameter of an error response is used; [`redeem`](Self::redeem)
    /// does it itself.
    ///
    /// # Errors
    /// Fails if `iss` is not this provider, or is missing although the provider announces it.
    pub async fn check_response_issuer(&self, iss: Option<&str>) -> Result<(), ProviderError> {
        self.check_issuer(&*self.endpoints.get().await?, iss)
    }

    pub(super) fn check_issuer(
        &self,
        endpoints: &Endpoints,
        iss: Option<&str>,
    ) -> Result<(), ProviderError> {
        let is_from =
            |issuer: &Issuer| check_response_issuer(issuer, endpoints.sends_issuer, iss).is_ok();
        let is_expected = match self.profile.protocol {
            Protocol::OpenId => self
                .tenants
                .iter()
                .any(|tenant| is_from(tenant.issuer.issuer())),
            Protocol::GitHub => {
                let issuer = &self.settings.issuer;
                let endpoints_issuer =
                    format!("{}/login/oauth", issuer.as_str().trim_end_matches('/'));
                iss == Some(endpoints_issuer.as_str()) || is_from(issuer)
            }
        };
        if is_expected {
            Ok(())
        } else {
            Err(ProviderError::IssuerMismatch)
        }
    }

    /// Returns the scopes to request, separated by spaces.
    pub(super) fn requested_scopes(&self, endpoints: &Endpoints) -> String {
        if !self.settings.scopes.is_empty() {
            return self.settings.scopes.join(" ");
        }
        let mut scopes = self.profile.scopes.to_vec();
        if endpoints.has_offline_access {
            scopes.push(OFFLINE_ACCESS);
        }
        scopes.join(" ")
    }
}
