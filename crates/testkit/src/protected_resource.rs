//! A protected resource and its authorization server for a [`FetchFn`](crate::FetchFn).

use http::header;
use portcullis_discovery::FetchRequest;

use crate::fetch_fn::Reply;

/// The resource.
pub const RESOURCE: &str = "https://mcp.example.com/mcp";
/// The resource's metadata.
pub const PRM_URL: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
/// The authorization server.
pub const ISSUER: &str = "https://auth.example.com";
/// The authorization server's metadata.
pub const METADATA_URL: &str = "https://auth.example.com/.well-known/oauth-authorization-server";
/// The registration endpoint.
pub const REGISTRATION_URL: &str = "https://auth.example.com/register";
/// The token endpoint.
pub const TOKEN_URL: &str = "https://auth.example.com/token";

/// Responds as a resource and an authorization server that follow the specifications. `None` for the resource with a token
/// and for unknown URLs.
pub fn well_behaved(request: &FetchRequest) -> Option<Reply> {
    Some(match request.url.as_str() {
        RESOURCE if !request.headers.contains_key(header::AUTHORIZATION) => Reply::challenge(),
        PRM_URL => Reply::json(200, prm(RESOURCE)),
        METADATA_URL => Reply::json(200, metadata()),
        REGISTRATION_URL => Reply::json(201, r#"{"client_id":"registered"}"#),
        TOKEN_URL => Reply::json(200, r#"{"access_token":"hush","token_type":"Bearer","expires_in":300}"#),
        _ => return None,
    })
}

/// The metadata of a resource whose authorization server is [`ISSUER`].
pub fn prm(resource: &str) -> serde_json::Value {
    serde_json::json!({ "resource": resource, "authorization_servers": [ISSUER] })
}

/// The authorization server's metadata.
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
