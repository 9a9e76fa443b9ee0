//! Introspection requests and the parsing of their responses.

use http::{StatusCode, header};
use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{
    AccessToken, IntrospectionResponse, authorization::OAuthError, client::client_secret_basic,
    syntax::url_without_secrets,
};
use url::Url;

use super::error::CallError;
use crate::settings::{IntrospectionAuthentication, IntrospectionSettings};

/// The maximum length of a response in bytes.
const MAX_BODY: usize = 64 * 1024;

/// Returns the introspection request for a token, with the client's identifier and secret (RFC 7662
/// section 2.1).
///
/// The response body is limited to 64 KiB; the timeout is the default of [`FetchRequest`]. The
/// endpoint of `settings` is not used, and `endpoint` is not checked: the policy applies when the
/// request is sent.
pub fn introspection_request(
    endpoint: Url,
    authentication: IntrospectionAuthentication,
    settings: &IntrospectionSettings,
    token: &AccessToken,
    policy: UrlPolicy,
) -> FetchRequest {
    let mut fields = vec![
        ("token", token.secret()),
        ("client_id", settings.client_id.as_str()),
    ];
    let mut authorization = None;
    match (&settings.client_secret, authentication) {
        (Some(secret), IntrospectionAuthentication::Post) => {
            fields.push(("client_secret", secret.secret()))
        }
        (Some(secret), IntrospectionAuthentication::Basic) => {
            authorization = client_secret_basic(&settings.client_id, secret)
        }
        (None, _) => {}
    }
    let mut request = FetchRequest::post_form(endpoint, fields, policy);
    request.max_body = MAX_BODY;
    match authorization {
        Some(value) => request.header(header::AUTHORIZATION, value),
        None => request,
    }
}

/// Parses the response of the endpoint, whose URL errors show. It does not check whether the token
/// is active. Fails if the status is not 200, or the body is not an introspection response.
pub(crate) fn parse_response(
    url: &Url,
    response: &FetchResponse,
) -> Result<IntrospectionResponse, CallError> {
    let shown = || String::from(url_without_secrets(url));
    let status = response.status.as_u16();
    if response.status == StatusCode::OK {
        return IntrospectionResponse::parse(&response.body).map_err(|error| CallError::Document {
            url: shown(),
            error,
        });
    }
    Err(if rejects_client(response) {
        CallError::Rejected {
            url: shown(),
            status,
        }
    } else {
        CallError::Status {
            url: shown(),
            status,
        }
    })
}

/// Returns whether a response of an introspection endpoint rejects the client (RFC 7662 section
/// 2.3, RFC 6749 section 5.2). Some servers send 403 to a client that may not introspect tokens.
pub fn rejects_client(response: &FetchResponse) -> bool {
    matches!(
        response.status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    ) || response.status == StatusCode::BAD_REQUEST
        && OAuthError::parse(&response.body).is_ok_and(|error| {
            matches!(
                error.error.as_str(),
                "invalid_client" | "unauthorized_client"
            )
        })
}
