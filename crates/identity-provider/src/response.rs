//! [`ProviderResponse`]: a successful response of a provider's token endpoint.

use std::time::Duration;

use portcullis_metadata::{Secret, UnixTime, authorization::TokenResponse};

use crate::{ProviderError, ProviderTokens};

/// A successful response of a provider's token endpoint. It does not say yet who the user is.
/// `Debug` prints no token.
#[derive(Clone, Debug)]
pub struct ProviderResponse {
    tokens: ProviderTokens,
    id_token: Option<Secret>,
}

impl ProviderResponse {
    /// Returns the tokens to store. Store them before
    /// [`identify`](crate::IdentityProvider::identify) is called, because the provider may have
    /// ended the previous ones.
    pub fn tokens(&self) -> &ProviderTokens {
        &self.tokens
    }

    /// Returns the tokens to store.
    pub fn into_tokens(self) -> ProviderTokens {
        self.tokens
    }

    /// Creates the response from that of the token endpoint. `previous` is the refresh token that
    /// was sent, which is kept if the response has none.
    pub(crate) fn new(
        response: TokenResponse,
        previous: Option<&Secret>,
        now: UnixTime,
    ) -> Result<Self, ProviderError> {
        if !response.is_bearer() {
            return Err(ProviderError::ResponseInvalid("token_type"));
        }
        let lifetime = response.expires_in.map(Duration::from_secs);
        Ok(Self {
            tokens: ProviderTokens {
                access_token: Some(Secret::new(response.access_token.secret())),
                access_token_expires: lifetime.map(|lifetime| now.saturating_add(lifetime)),
                refresh_token: response
                    .refresh_token
                    .filter(|token| !token.secret().is_empty())
                    .or_else(|| previous.cloned()),
            },
            id_token: response.id_token,
        })
    }

    pub(crate) fn id_token(&self) -> Option<&Secret> {
        self.id_token.as_ref()
    }
}
