//! A protected resource and its authorization server for a [`FetchFn`](crate::FetchFn).

use http::header;
use portcullis_discovery::FetchRequest;

use crate::reply::Reply;
pub use crate::resource_urls::{
    ISSUER, METADATA_URL, PRM_URL, REGISTRATION_URL, RESOURCE, TOKEN_URL,
};

/// Responds as a resource and an authorization server that follow the specifications. `None` for
/// the resource with a token and for unknown URLs.
pub fn well_behaved(request: &FetchRequest) -> Option<Reply> {
    Some(match request.url.as_str() {
        RESOURCE if !request.headers.contains_key(header::AUTHORIZATION) => Reply::challenge(),
        PRM_URL => Reply::json(200, prm(RESOURCE)),
        METADATA_URL => Reply::json(200, metadata()),
        REGISTRATION_URL => Reply::json(201, r#"{"client_id":"registered"}"#),
        TOKEN_URL => Reply::json(
            200,
            r#"{"access_token":"hush","token_type":"Bearer","expires_in":300}"#,
        ),
        _ => return None,
    })
}

/// Returns the metadata of a resource whose authorization server is [`ISSUER`].
pub fn prm(resource: &str) -> serde_json::Value {
    serde_json::json!({ "resource": resource, "authorization_servers": [ISSUER] })
}

/// Returns the authorization server's metadata.
pub fn metadata() -> serde_json::Value {
    serde_json::json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://auth.example.com/authorize",
        "token_endpoint": TOKEN_URL,
        "registration_endpoint": REGISTRATION_URL,
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}
