//! Assertions with which clients authenticate (DO).

use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::Clock as _;
use portcullis_testkit::TestIssuer;
use serde_json::{Value, json};

use crate::{
    documents::{DOCUMENT, KEYS, document, serve},
    support::{ISSUER, Setup},
};

/// Changes the claims of an assertion.
type Change = Box<dyn Fn(&mut Value)>;

/// DO9: a client assertion is for this server, for a short time, and for one use.
#[tokio::test]
async fn client_assertions_that_are_replayed_or_foreign() {
    let setup = Setup::new();
    let key = SigningKey::generate(Algorithm::Es256, "k").unwrap();
    let mut with_keys = document();
    with_keys["token_endpoint_auth_method"] = json!("private_key_jwt");
    with_keys["jwks_uri"] = json!(KEYS);
    serve(&setup.network, &with_keys, 3600);
    setup.network.serve(KEYS, 200, TestIssuer::jwks_of(&[&key]));
    let revoke = vec![("token", "unknown".to_owned())];
    let now = setup.clock.now().as_secs();
    let claims = |jti: &str, change: &dyn Fn(&mut Value)| {
        let mut claims = json!({
            "iss": DOCUMENT, "sub": DOCUMENT, "aud": ISSUER, "jti": jti,
            "iat": now, "exp": now + 60,
        });
        change(&mut claims);
        claims
    };
    let send = async |key: &SigningKey, claims: &Value| {
        let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
        with_assertion(&setup, "/oauth/revoke", &assertion, &revoke)
            .await
            .status()
    };
    for aud in [
        json!(ISSUER),
        json!("https://mcp.example.com/oauth/token"),
        json!([ISSUER]),
    ] {
        let claims = claims(&aud.to_string(), &|claims| claims["aud"] = aud.clone());
        assert_eq!(send(&key, &claims).await, StatusCode::OK, "{aud}");
        assert_eq!(send(&key, &claims).await, StatusCode::UNAUTHORIZED, "{aud}");
    }
    let other = "https://other.example";
    let attacks: [(&str, Change); 9] = [
        ("aud", Box::new(move |claims| claims["aud"] = json!(other))),
        (
            "resource",
            Box::new(|claims| claims["aud"] = json!(crate::support::RESOURCE)),
        ),
        (
            "slash",
            Box::new(|claims| claims["aud"] = json!(format!("{ISSUER}/"))),
        ),
        (
            "two",
            Box::new(move |claims| claims["aud"] = json!([ISSUER, other])),
        ),
        ("iss", Box::new(move |claims| claims["iss"] = json!(other))),
        ("sub", Box::new(move |claims| claims["sub"] = json!(other))),
        ("jti", Box::new(|claims| claims["jti"] = Value::Null)),
        (
            "past",
            Box::new(move |claims| claims["exp"] = json!(now - 120)),
        ),
        (
            "late",
            Box::new(move |claims| claims["exp"] = json!(now + 3700)),
        ),
    ];
    for (name, change) in &attacks {
        let status = send(&key, &claims(name, change)).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{name}");
    }
    let foreign = SigningKey::generate(Algorithm::Es256, "k").unwrap();
    let status = send(&foreign, &claims("foreign key", &|_| ())).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // Without an assertion, the client is not itself.
    let fields = [("client_id", DOCUMENT), ("token", "unknown")];
    let response = setup.post("/oauth/revoke", &fields).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

/// Sends a request to the token endpoint with a client assertion.
pub(crate) async fn authenticated(
    setup: &Setup,
    key: &SigningKey,
    audience: &str,
    jti: &str,
    fields: &[(&str, String)],
) -> Response<Bytes> {
    let now = setup.clock.now().as_secs();
    let claims = json!({
        "iss": DOCUMENT, "sub": DOCUMENT, "aud": audience, "jti": jti,
        "iat": now, "exp": now + 60,
    });
    let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
    with_assertion(setup, "/oauth/token", &assertion, fields).await
}

async fn with_assertion(
    setup: &Setup,
    path: &str,
    assertion: &str,
    fields: &[(&str, String)],
) -> Response<Bytes> {
    let mut all: Vec<_> = fields
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let assertion_type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    all.push(("client_assertion_type", assertion_type));
    all.push(("client_assertion", assertion));
    setup.post(path, &all).await
}
