//! Updates a registration that lacks scopes (RFC 7592 section 2.2).

use portcullis_metadata::{Scopes, client::ClientRegistrationResponse};
use serde_json::{Value, json};

use super::Authorizer;
use crate::{
    registration::{configuration_endpoint::ConfigurationEndpoint, registered::Registered},
    server::Server,
};

/// The members of a registration response that an update must not contain (RFC 7592 section 2.2).
const NOT_SENT: [&str; 4] = [
    "registration_access_token",
    "registration_client_uri",
    "client_secret_expires_at",
    "client_id_issued_at",
];

impl Authorizer {
    /// Adds scopes to a registration at its client configuration endpoint. Returns `None` if there
    /// is no usable one, or the server rejects the update or grants other scopes.
    pub(super) async fn updated_registration(
        &self,
        server: &Server,
        registered: &Registered,
        scopes: &Scopes,
    ) -> Option<Registered> {
        let endpoint = ConfigurationEndpoint::of(registered, server)?;
        let answer = self
            .fetch
            .fetch(endpoint.update(updated_document(registered, scopes)?))
            .await
            .ok()?;
        if !answer.status.is_success() {
            tracing::debug!(
                status = answer.status.as_u16(),
                "the authorization server did not update the registration"
            );
            return None;
        }
        let mut response = ClientRegistrationResponse::parse(&answer.body).ok()?;
        if response.client_id != registered.response.client_id {
            return None;
        }
        // The credentials that the response does not repeat stay as they were.
        let before = &registered.response;
        if response.client_secret.is_none() {
            response.client_secret = before.client_secret.clone();
            response.client_secret_expires_at = before.client_secret_expires_at;
        }
        if response.metadata.token_endpoint_auth_method.is_none() {
            response.metadata.token_endpoint_auth_method =
                before.metadata.token_endpoint_auth_method.clone();
        }
        response.registration_access_token = response
            .registration_access_token
            .or_else(|| before.registration_access_token.clone());
        response.registration_client_uri = response
            .registration_client_uri
            .or_else(|| before.registration_client_uri.clone());
        let named = response.metadata.scope.as_deref().map(Scopes::parse);
        if named.is_some_and(|named| !named.is_ok_and(|named| named.covers(scopes))) {
            return None;
        }
        Some(Registered {
            asked: scopes.clone(),
            response,
            ..registered.clone()
        })
    }
}

/// The JSON document of a registration with other scopes. The update replaces all metadata, so it
/// repeats what was registered.
fn updated_document(registered: &Registered, scopes: &Scopes) -> Option<Vec<u8>> {
    let mut metadata: Value = serde_json::from_slice(&registered.response.to_json()).ok()?;
    let members = metadata.as_object_mut()?;
    for name in NOT_SENT {
        members.remove(name);
    }
    members.insert("scope".to_owned(), json!(scopes.to_string()));
    if let Some(redirect_uri) = &registered.redirect_uri
        && members
            .get("redirect_uris")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
    {
        members.insert("redirect_uris".to_owned(), json!([redirect_uri]));
    }
    serde_json::to_vec(&metadata).ok()
}
