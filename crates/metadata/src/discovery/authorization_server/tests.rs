//! Server metadata round-trips, and wrong types and relative URLs are rejected.

use proptest::{option, prelude::*};
use serde_json::json;

use super::*;
use crate::json::arbitrary;

fn parse(document: &Value) -> Result<AuthorizationServerMetadata, DocumentError> {
    AuthorizationServerMetadata::parse(document.to_string().as_bytes())
}

/// A document with every member.
fn full() -> Value {
    json!({
        "issuer": "https://as.example/realms/a",
        "authorization_endpoint": "https://as.example/auth?tenant=1",
        "token_endpoint": "https://as.example/token",
        "registration_endpoint": "https://as.example/register",
        "introspection_endpoint": "https://as.example/introspect",
        "revocation_endpoint": "https://as.example/revoke",
        "pushed_authorization_request_endpoint": "https://as.example/par",
        "jwks_uri": "https://as.example/jwks",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "scopes_supported": ["openid", "mcp:tools"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
        "introspection_endpoint_auth_methods_supported": ["client_secret_post"],
        "introspection_endpoint_auth_signing_alg_values_supported": ["ES384"],
        "revocation_endpoint_auth_methods_supported": ["private_key_jwt"],
        "revocation_endpoint_auth_signing_alg_values_supported": ["ES512"],
        "service_documentation": "https://as.example/docs",
        "op_policy_uri": "https://as.example/policy",
        "op_tos_uri": "https://as.example/tos",
        "ui_locales_supported": ["de"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
        "signed_metadata": "e30.e30.c2ln",
        "userinfo_endpoint": "https://as.example/userinfo",
        "subject_types_supported": ["public"],
        "claims_parameter_supported": false,
        "mtls_endpoint_aliases": {"token_endpoint": "https://mtls.as.example/token"},
    })
}

/// G8: every member is parsed and survives a round trip.
#[test]
fn every_member_round_trips() {
    let parsed = parse(&full()).unwrap();
    assert_eq!(
        parsed.introspection_endpoint.as_ref().unwrap().as_str(),
        "https://as.example/introspect"
    );
    assert_eq!(
        parsed.code_challenge_methods_supported.as_deref().unwrap(),
        ["plain", "S256"]
    );
    assert_eq!(parsed.extra.len(), 4);
    assert!(parsed.authorization_response_iss_parameter_supported);
    assert_eq!(
        serde_json::from_slice::<Value>(&parsed.to_json()).unwrap(),
        full()
    );
}

/// G8, I2: a member that is absent or null has its default value.
#[test]
fn only_the_issuer_is_required() {
    let document =
        json!({"issuer": "https://as.example", "jwks_uri": null, "scopes_supported": null});
    let parsed = parse(&document).unwrap();
    assert_eq!(
        parsed,
        AuthorizationServerMetadata::new(Issuer::parse("https://as.example").unwrap())
    );
    assert_eq!(parsed.to_json(), br#"{"issuer":"https://as.example"}"#);
}

/// G4: the issuer is kept byte for byte.
#[test]
fn the_issuer_is_not_normalized() {
    let parsed = parse(&json!({"issuer": "https://AS.example:443/%41/"})).unwrap();
    assert_eq!(parsed.issuer.as_str(), "https://AS.example:443/%41/");
}

/// G8: a document with an endpoint that is not an absolute URL is rejected.
#[test]
fn endpoints_must_be_absolute_urls() {
    for endpoint in [
        json!("/token"),
        json!("token"),
        json!("//as.example/token"),
        json!(""),
        json!("https:token"),
        json!("javascript:alert(1)"),
        json!("file:///etc/passwd"),
        json!("https://as.example/token#x"),
        json!("https://as.example/\ntoken"),
        json!(5),
        json!(["https://as.example"]),
    ] {
        for member in [
            "token_endpoint",
            "jwks_uri",
            "introspection_endpoint",
            "authorization_endpoint",
        ] {
            let mut document = full();
            document[member] = endpoint.clone();
            let code = parse(&document).unwrap_err().code();
            assert!(
                matches!(code, "document.member_url" | "document.member_type"),
                "{endpoint}: {code}"
            );
        }
    }
}

#[test]
fn wrong_types_are_rejected() {
    for (member, value) in [
        ("issuer", json!(["https://as.example"])),
        ("response_types_supported", json!("code")),
        ("code_challenge_methods_supported", json!([256])),
        ("client_id_metadata_document_supported", json!("true")),
    ] {
        let mut document = full();
        document[member] = value;
        assert_eq!(
            parse(&document).unwrap_err().code(),
            "document.member_type",
            "{member}"
        );
    }
    assert_eq!(
        parse(&json!({})).unwrap_err(),
        DocumentError::Missing { member: "issuer" }
    );
}

proptest! {
    /// G8: any document round-trips.
    #[test]
    fn documents_round_trip(
        issuer in arbitrary::issuer(),
        authorization_endpoint in option::of(arbitrary::endpoint()),
        token_endpoint in option::of(arbitrary::endpoint()),
        jwks_uri in option::of(arbitrary::endpoint()),
        response_types_supported in prop::collection::vec(any::<String>(), 0..3),
        code_challenge_methods_supported in option::of(arbitrary::entries()),
        op_policy_uri: Option<String>,
        client_id_metadata_document_supported: bool,
        extra in arbitrary::extra(),
    ) {
        let built = AuthorizationServerMetadata {
            authorization_endpoint,
            token_endpoint,
            jwks_uri,
            response_types_supported,
            code_challenge_methods_supported,
            op_policy_uri,
            client_id_metadata_document_supported,
            extra,
            ..AuthorizationServerMetadata::new(issuer)
        };
        prop_assert_eq!(AuthorizationServerMetadata::parse(&built.to_json()), Ok(built));
    }
}
