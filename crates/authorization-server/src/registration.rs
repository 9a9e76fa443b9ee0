//! The registration endpoint (RFC 7591 section 3).

use std::sync::Arc;

use portcullis_metadata::UnixTime;

use crate::{
    client::{ClientRegistration, NewClient},
    error::{ErrorCode, ErrorResponse},
    store::{Store, StoreError},
};

/// Registers a client under this identifier. The identifier is random, or derived from the client's
/// metadata so that the same client has one registration.
///
/// # Errors
/// Fails with `temporarily_unavailable` when the client cannot be stored.
pub async fn register(
    store: &impl Store,
    id: &str,
    now: UnixTime,
    new: NewClient,
) -> Result<ClientRegistration, ErrorResponse> {
    let NewClient {
        client,
        mut information,
    } = new;
    information.client_id = id.to_owned();
    information.client_id_issued_at = Some(UnixTime::from_secs(now.as_secs()));
    let registration = ClientRegistration {
        client: Arc::new(client),
        information,
    };
    match store.register_client(&registration).await {
        Ok(()) => Ok(registration),
        Err(StoreError::Full) => Err(ErrorResponse::new(
            ErrorCode::TemporarilyUnavailable,
            "the maximum number of clients is reached, and all of them are in use",
        )),
        Err(error) => Err(error.into()),
    }
}
