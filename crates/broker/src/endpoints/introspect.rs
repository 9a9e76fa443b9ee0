//! The introspection endpoint (RFC 7662), for resource servers elsewhere.

use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse,
    authentication::{PresentedCredential, check_secret},
    introspect,
};

use super::{BrokerRequest, respond};
use crate::Broker;

impl Broker {
    pub(super) async fn introspect(&self, request: &BrokerRequest) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.tokens(request.address) {
            return respond::too_many_requests(exceeded.retry_after_secs());
        }
        match self.try_introspect(request).await {
            Ok(body) => respond::json(StatusCode::OK, body),
            Err(error) => {
                self.rejected("introspect", error.code.as_str(), error.description);
                respond::error(error)
            }
        }
    }

    /// Returns what the caller may know: tokens for its own resource (TK7).
    async fn try_introspect(&self, request: &BrokerRequest) -> Result<Vec<u8>, ErrorResponse> {
        let failed = |description| ErrorResponse::new(ErrorCode::InvalidClient, description);
        let form = request.form().ok_or(ErrorResponse::new(
            ErrorCode::InvalidRequest,
            "the content type must be application/x-www-form-urlencoded",
        ))?;
        let presented = PresentedCredential::parse(&request.headers, &form)?;
        let secret = presented.secret().ok_or(failed(
            "the resource server must authenticate with its secret",
        ))?;
        let mut clients = self.settings.introspection_clients.iter();
        let client = clients
            .find(|client| *client.id == *presented.id())
            .ok_or(failed("the resource server is unknown"))?;
        check_secret(&client.secret, secret)?;
        let audience = Some(client.resource.as_str());
        let response = introspect(&self.store, &self.access_tokens, audience, &form).await?;
        Ok(response.to_json())
    }
}
