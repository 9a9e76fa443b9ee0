//! The revocation endpoint (RFC 7009).

use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_authorization_server::{ErrorCode, ErrorResponse, revoke};

use super::{BrokerRequest, respond};
use crate::{Broker, observer::EndReason};

impl Broker {
    pub(super) async fn revoke(&self, request: &BrokerRequest) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.tokens(request.address) {
            return respond::too_many_requests(exceeded.retry_after_secs());
        }
        match self.try_revoke(request).await {
            Ok(()) => respond::json(StatusCode::OK, b"{}".to_vec()),
            Err(error) => {
                self.rejected("revoke", error.code.as_str(), error.description);
                respond::error(error)
            }
        }
    }

    async fn try_revoke(&self, request: &BrokerRequest) -> Result<(), ErrorResponse> {
        let form = request.form().ok_or(ErrorResponse::new(
            ErrorCode::InvalidRequest,
            "the content type must be application/x-www-form-urlencoded",
        ))?;
        let client = self.authenticate(request, &form).await?;
        let store = self.store.ending_for(EndReason::Revoked);
        revoke(&store, &self.access_tokens, &client.id, &form)
            .await
            .map(drop)
    }
}
