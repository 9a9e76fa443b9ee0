use std::time::Duration;

use http::{StatusCode, header};
use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{AccessToken, IntrospectionResponse, OAuthError, client_secret_basic};

use super::{Endpoint, IntrospectionAuthentication, IntrospectionSettings, error::CallError};

const MAX_BODY: usize = 64 * 1024;

/// The request that asks about a token (RFC 7662 section 2.1).
pub(crate) fn build(
    endpoint: &Endpoint,
    settings: &IntrospectionSettings,
    token: &AccessToken,
    policy: UrlPolicy,
    limit: Duration,
) -> FetchRequest {
    let mut fields = vec![("token", token.secret()), ("client_id", settings.client_id.as_str())];
    let mut authorization = None;
    match (&settings.client_secret, endpoint.authentication) {
        (Some(secret), IntrospectionAuthentication::Post) => fields.push(("client_secret", secret.secret())),
        (Some(secret), IntrospectionAuthentication::Basic) => {
            authorization = client_secret_basic(&settings.client_id, secret)
        }
        (None, _) => {}
    }
    let mut request = FetchRequest::post_form(endpoint.url.clone(), fields, policy);
    request.max_body = MAX_BODY;
    request.timeout = limit;
    match authorization {
        Some(value) => request.header(header::AUTHORIZATION, value),
        None => request,
    }
}

/// Reads the answer, whatever it says about the token.
pub(crate) fn read(answer: &FetchResponse) -> Result<IntrospectionResponse, CallError> {
    let status = answer.status.as_u16();
    if answer.status == StatusCode::OK {
        return Ok(IntrospectionResponse::parse(&answer.body)?);
    }
    Err(if rejects_client(answer) { CallError::Rejected { status } } else { CallError::Status { status } })
}

/// Whether an answer is about this server's client and not about the token (RFC 7662 section 2.3, RFC 6749 section 5.2).
/// Some servers answer 403 to a client that may not introspect.
fn rejects_client(answer: &FetchResponse) -> bool {
    matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        || answer.status == StatusCode::BAD_REQUEST
            && OAuthError::parse(&answer.body)
                .is_ok_and(|error| matches!(error.error.as_str(), "invalid_client" | "unauthorized_client"))
}
