//! Whether the token endpoint reads `client_secret_basic` as RFC 6749 section 2.3.1 defines it.

use http::header;
use portcullis_discovery::{ChainPolicy, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{
    AuthorizationServerMetadata, Secret, authorization::OAuthError, client::client_secret_basic,
};
use url::Url;

use crate::{Finding, Rule};

const BASIC: Rule = Rule {
    id: "issuer.client_authentication",
    source: "RFC 6749 section 2.3.1",
};

/// An identifier that no client has, so that the request fails.
const UNKNOWN_CLIENT: &str = "portcullis-doctor";

/// A token request of an unknown client, with `client_secret_basic` and without `client_id` in the
/// body. None if the server does not list that method or its endpoint must not be called.
pub(crate) fn request(
    metadata: &AuthorizationServerMetadata,
    policy: &ChainPolicy,
) -> Option<FetchRequest> {
    let listed = metadata.token_endpoint_auth_methods_supported.as_deref();
    if listed.is_some_and(|listed| !listed.iter().any(|method| method == "client_secret_basic")) {
        return None;
    }
    let endpoint = metadata.token_endpoint.as_ref()?;
    let policy = policy.of(endpoint);
    policy.check(endpoint).ok()?;
    let basic = client_secret_basic(UNKNOWN_CLIENT, &Secret::new(UNKNOWN_CLIENT))?;
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", UNKNOWN_CLIENT),
    ];
    Some(
        FetchRequest::post_form(endpoint.clone(), fields, policy)
            .header(header::AUTHORIZATION, basic),
    )
}

/// A token request of an unknown public client.
pub(crate) fn public_request(endpoint: &Url, policy: UrlPolicy) -> FetchRequest {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", UNKNOWN_CLIENT),
        ("client_id", UNKNOWN_CLIENT),
    ];
    FetchRequest::post_form(endpoint.clone(), fields, policy)
}

/// Checks the error response. None if it is not an OAuth error.
pub(crate) fn check(response: &FetchResponse) -> Option<Finding> {
    let error = OAuthError::parse(&response.body)
        .ok()
        .filter(|_| !response.status.is_success())?;
    Some(if wants_client_id(&error) {
        Finding::warning(
            BASIC,
            "the token endpoint lists client_secret_basic, but requires `client_id` in the body: clients that send only \
             the Authorization header cannot sign in",
            "read the client identifier from the Authorization header, or list client_secret_post and none instead",
        )
    } else {
        Finding::met(
            BASIC,
            "the token endpoint reads the client from the Authorization header",
        )
    })
}

/// Whether an error says that `client_id` is missing.
fn wants_client_id(error: &OAuthError) -> bool {
    let description = error
        .error_description
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    description.contains("client_id")
        && ["missing", "required"]
            .iter()
            .any(|word| description.contains(word))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};
    use portcullis_metadata::Issuer;

    use super::*;
    use crate::Verdict;

    fn verdict(status: u16, body: &'static str) -> Option<Verdict> {
        let status = StatusCode::from_u16(status).unwrap();
        let response = FetchResponse {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
            sent: Default::default(),
        };
        check(&response).map(|finding| finding.verdict)
    }

    /// I4: a server that reads the client only from the body is reported.
    #[test]
    fn a_required_client_id_is_reported() {
        for (status, body, expected) in [
            (
                401,
                r#"{"error":"invalid_client","error_description":"Missing client_id"}"#,
                Some(Verdict::Warning),
            ),
            (
                400,
                r#"{"error":"invalid_request","error_description":"client_id: Field required"}"#,
                Some(Verdict::Warning),
            ),
            (
                401,
                r#"{"error":"invalid_client","error_description":"Invalid client_id"}"#,
                Some(Verdict::Met),
            ),
            (401, r#"{"error":"invalid_client"}"#, Some(Verdict::Met)),
            (404, "<html>", None),
        ] {
            assert_eq!(verdict(status, body), expected, "{body}");
        }
    }

    #[test]
    fn only_a_server_that_lists_basic_is_asked() {
        let mut metadata =
            AuthorizationServerMetadata::new(Issuer::parse("https://auth.example.com").unwrap());
        let asked = |metadata: &AuthorizationServerMetadata| {
            request(
                metadata,
                &UrlPolicy::Peer {
                    loopback_http: false,
                    private_addresses: false,
                }
                .into(),
            )
        };
        assert!(asked(&metadata).is_none());

        metadata.token_endpoint = Some(Url::parse("https://auth.example.com/token").unwrap());
        let sent = asked(&metadata).unwrap();
        assert!(sent.headers.contains_key(header::AUTHORIZATION));
        assert!(!String::from_utf8_lossy(&sent.body).contains("client_id"));

        metadata.token_endpoint_auth_methods_supported = Some(vec!["client_secret_post".into()]);
        assert!(asked(&metadata).is_none());
        metadata.token_endpoint_auth_methods_supported = Some(vec!["client_secret_basic".into()]);
        metadata.token_endpoint = Some(Url::parse("http://auth.example.com/token").unwrap());
        assert!(asked(&metadata).is_none());
    }
}
