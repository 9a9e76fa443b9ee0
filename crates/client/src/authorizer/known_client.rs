//! Checks whether the authorization server still knows a registered client, before the browser
//! opens.

use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, header};
use portcullis_discovery::FetchRequest;
use portcullis_metadata::{authorization::PkceVerifier, client::ClientRegistrationResponse};
use url::Url;

use super::{Authorizer, GrantContext, clients::Client};
use crate::{
    AuthorizationRequest, ClientError,
    authorization::code_flow::CodeFlow,
    authorization::request::RequestParameters,
    registration::{configuration_endpoint::ConfigurationEndpoint, registered::Registered},
};

/// The time limit of each check. If the check times out, the sign-in continues.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

impl Authorizer {
    /// Whether the server certainly no longer knows the client: by its configuration endpoint (RFC
    /// 7592), otherwise by a request to the authorization endpoint that no browser sees. Fails with
    /// [`ClientError::NoRandomness`]. Without a response, the result is false.
    pub(super) async fn has_forgotten(
        &self,
        flow: &CodeFlow,
        client: &Client,
        redirect_uri: &Url,
        found: &GrantContext,
    ) -> Result<bool, ClientError> {
        let Some(registered) = client.reused() else {
            return Ok(false);
        };
        match self.is_configured(flow, registered).await {
            Some(is_known) => Ok(!is_known),
            None => {
                self.is_rejected(flow, registered, redirect_uri, found)
                    .await
            }
        }
    }

    /// Whether the client configuration endpoint knows the client. `None` if there is none, or its
    /// response is inconclusive.
    async fn is_configured(&self, flow: &CodeFlow, registered: &Registered) -> Option<bool> {
        let mut request = ConfigurationEndpoint::of(registered, &flow.server)?.read();
        request.timeout = CHECK_TIMEOUT;
        let answer = self.fetch.fetch(request).await.ok()?;
        match answer.status {
            StatusCode::OK => {
                let current = ClientRegistrationResponse::parse(&answer.body).ok()?;
                (current.client_id == registered.response.client_id).then_some(true)
            }
            // RFC 7592 section 2.1: the client does not exist.
            StatusCode::UNAUTHORIZED => Some(false),
            _ => None,
        }
    }

    /// Whether the authorization endpoint rejects the client. The request has its own state and
    /// challenge; redirects are not followed, and a code is discarded.
    async fn is_rejected(
        &self,
        flow: &CodeFlow,
        registered: &Registered,
        redirect_uri: &Url,
        found: &GrantContext,
    ) -> Result<bool, ClientError> {
        let verifier = PkceVerifier::generate().map_err(|_| ClientError::NoRandomness)?;
        let request = AuthorizationRequest::new(
            flow,
            &RequestParameters {
                client_id: &registered.response.client_id,
                redirect_uri,
                challenge: &verifier.challenge(),
                resource: found.requested_resource(),
                profile: &found.profile,
                scopes: &found.scopes,
                binding: None,
            },
        )?;
        let mut request = FetchRequest::new(
            Method::GET,
            request.url().clone(),
            flow.server.policy.of(request.url()),
        )
        .header(
            header::ACCEPT,
            HeaderValue::from_static("text/html, application/json"),
        );
        request.timeout = CHECK_TIMEOUT;
        // Without a response, the result is unknown.
        let Ok(answer) = self.fetch.fetch(request).await else {
            return Ok(false);
        };
        Ok(is_rejection(answer.status, &answer.body))
    }
}

/// Whether a page reports an unknown client. A false positive costs one new registration.
fn is_rejection(status: StatusCode, body: &[u8]) -> bool {
    const REASONS: [&str; 7] = [
        "not found",
        "unknown",
        "invalid",
        "not registered",
        "unregistered",
        "not exist",
        "unauthorized",
    ];
    let is_candidate = matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND
    );
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    is_candidate && text.contains("client") && REASONS.iter().any(|reason| text.contains(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H3: known pages of unknown clients are recognized; sign-in pages and other failures are not.
    #[test]
    fn pages_of_unknown_clients_are_recognized() {
        for (status, body, expected) in [
            (
                400,
                r#"{"error":"invalid_request","error_description":"Client ID 'x' not found"}"#,
                true,
            ),
            (
                400,
                r#"{"error":"invalid_client","error_description":"Invalid client_id"}"#,
                true,
            ),
            (400, "<p class=\"instruction\">Client not found.</p>", true),
            (200, "<p>Client not found.</p>", false),
            (302, "", false),
            (400, r#"{"error":"invalid_scope"}"#, false),
            (403, "<p>Unknown client certificate</p>", false),
            (500, "client not found", false),
        ] {
            assert_eq!(
                is_rejection(StatusCode::from_u16(status).unwrap(), body.as_bytes()),
                expected,
                "{body}"
            );
        }
    }
}
