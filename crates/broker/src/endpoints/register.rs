//! The registration endpoint (RFC 7591 section 3).

use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse,
    client::{NewClient, RegistrationRules, derive_client_id, parse_registration},
    register,
};

use super::{BrokerRequest, JSON, respond};
use crate::{Broker, keys::Purpose, observer::BrokerEvent};

/// The maximum size of a registration in bytes (RG4).
const MAX_REGISTRATION: usize = 16 * 1024;

impl Broker {
    pub(super) async fn register(&self, request: &BrokerRequest) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.registrations(request.address) {
            return respond::too_many_requests(exceeded.retry_after_secs());
        }
        match self.try_register(request).await {
            Ok(body) => respond::json(StatusCode::CREATED, body),
            Err(error) => {
                self.rejected("register", error.code.as_str(), error.description);
                respond::error(error)
            }
        }
    }

    async fn try_register(&self, request: &BrokerRequest) -> Result<Vec<u8>, ErrorResponse> {
        let invalid =
            |description| ErrorResponse::new(ErrorCode::InvalidClientMetadata, description);
        if !request.has_type(JSON) {
            return Err(invalid("the content type must be application/json"));
        }
        if request.body.len() > MAX_REGISTRATION {
            return Err(invalid("the registration is larger than 16 KB"));
        }
        let metadata = parse_registration(&request.body)?;
        let rules = RegistrationRules::Lenient(&self.redirects);
        let new = NewClient::from_metadata(metadata, rules, None)?;
        let key = self.keys.current(Purpose::ClientIdentifiers);
        let (_, key) = key.ok_or(ErrorResponse::new(
            ErrorCode::ServerError,
            "the client cannot be registered",
        ))?;
        let id = derive_client_id(key, &new.client)?;
        let registration = register(&self.store, &id, self.clock.now(), new).await?;
        self.observe(&BrokerEvent::ClientRegistered { client_id: &id });
        Ok(registration.information.to_json())
    }
}
