//! Back-channel logout (OpenID Connect Back-Channel Logout 1.0).

use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_authorization_server::{ErrorCode, ErrorResponse, Store as _};
use portcullis_identity_provider::LogoutToken;

use super::{BrokerRequest, respond};
use crate::{Broker, observer::EndReason};

/// A bound for the grants that one logout token ends.
const MAX_GRANTS: usize = 10_000;

impl Broker {
    /// Ends the grants of the session, or of the user, that a logout token of the provider at this
    /// position names (US5).
    pub(super) async fn logout(&self, position: usize, request: &BrokerRequest) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.tokens(request.address) {
            return respond::too_many_requests(exceeded.retry_after_secs());
        }
        match self.try_logout(position, request).await {
            Ok(()) => respond::json(StatusCode::OK, b"{}".to_vec()),
            Err(error) => {
                self.rejected("logout", error.code.as_str(), error.description);
                respond::error(error)
            }
        }
    }

    async fn try_logout(
        &self,
        position: usize,
        request: &BrokerRequest,
    ) -> Result<(), ErrorResponse> {
        let invalid = |description| ErrorResponse::new(ErrorCode::InvalidRequest, description);
        let form = request.form().ok_or(invalid("the body is not a form"))?;
        let token = form
            .get("logout_token")?
            .ok_or(invalid("logout_token is missing"))?;
        let provider = self
            .providers
            .get(position)
            .ok_or(invalid("there is no such provider"))?;
        let token = provider.verify_logout_token(token).await.map_err(|error| {
            // Anybody can send one, so that it is no failure of the provider.
            tracing::info!(
                provider.name = provider.name(),
                error.code = error.code(),
                "a logout token is rejected: {error}"
            );
            invalid("the logout token is not valid")
        })?;
        self.end_sign_ins(provider.name(), &token).await
    }

    async fn end_sign_ins(&self, provider: &str, token: &LogoutToken) -> Result<(), ErrorResponse> {
        let unavailable = |error| self.unavailable(error);
        let used = self.store.is_logout_token_used(provider, &token.jti).await;
        if used.map_err(unavailable)? {
            return Err(ErrorResponse::new(
                ErrorCode::InvalidRequest,
                "the logout token was used before",
            ));
        }
        let (session, user) = (token.sid.as_deref(), token.sub.as_deref());
        let grants = self
            .store
            .grants_of_sign_in(provider, session, user, MAX_GRANTS)
            .await
            .map_err(unavailable)?;
        let store = self.store.ending_for(EndReason::LoggedOut);
        for id in grants {
            store.end_grant(&id).await?;
        }
        // The last step, so that the provider can send the token again if another one fails.
        let used = self.store.use_logout_token(provider, token).await;
        used.map_err(unavailable)
    }
}
