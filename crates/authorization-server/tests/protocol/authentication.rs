//! Forged, repeated and confused credentials of clients.

use std::slice;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params, authentication::PresentedCredential, client::Credential,
};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{JwkSet, Secret, UnixTime};
use serde_json::{Value, json};

use crate::{store::MemoryStore, support::form};

const ISSUER: &str = "https://mcp.example.com";
const NOW: u64 = 1_000_000;
const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Presents a credential to a client's registered one.
async fn authenticate(
    store: &MemoryStore,
    registered: &Credential,
    headers: &HeaderMap,
    form: &Params,
) -> Result<(), ErrorResponse> {
    let presented = PresentedCredential::parse(headers, form)?;
    let now = UnixTime::from_secs(NOW);
    presented.verify(registered, store, ISSUER, now).await
}

fn basic(id: &str, secret: &str) -> HeaderMap {
    let value = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&value).unwrap())])
}

fn key() -> SigningKey {
    SigningKey::generate(Algorithm::Es256, "key").unwrap()
}

fn registered(key: &SigningKey) -> Credential {
    let published = json!({ "keys": [key.public_jwk()] }).to_string();
    Credential::keys(&JwkSet::parse(published.as_bytes()).unwrap()).unwrap()
}

/// Presents an assertion with these claims replaced, or removed if they are null.
async fn assert_with(
    store: &MemoryStore,
    key: &SigningKey,
    registered: &Credential,
    changes: &[(&str, Value)],
) -> Result<(), ErrorResponse> {
    let mut claims = json!({
        "iss": "client-a", "sub": "client-a", "aud": ISSUER, "jti": "1", "iat": NOW, "exp": NOW + 60,
    });
    for (name, value) in changes {
        claims[*name] = value.clone();
    }
    claims
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
    let form = form(&[
        ("client_assertion_type", TYPE),
        ("client_assertion", &assertion),
    ]);
    authenticate(store, registered, &HeaderMap::new(), &form).await
}

#[tokio::test]
async fn an_assertion_is_accepted_once() {
    let (store, key) = (MemoryStore::default(), key());
    let registered = registered(&key);
    assert_with(&store, &key, &registered, &[]).await.unwrap();
    let error = assert_with(&store, &key, &registered, &[])
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidClient);
    assert_eq!(error.description, "the assertion was used before");
    assert_with(&store, &key, &registered, &[("jti", json!("2"))])
        .await
        .unwrap();
}

/// ChatGPT names the token endpoint, where the server accepts it.
#[tokio::test]
async fn an_assertion_names_exactly_one_accepted_audience() {
    let key = key();
    let registered = registered(&key);
    let endpoint = "https://mcp.example.com/oauth/token";
    for (jti, aud, is_accepted) in [
        ("1", json!(ISSUER), true),
        ("2", json!(endpoint), true),
        ("3", json!([endpoint]), true),
        ("4", json!([ISSUER, endpoint]), false),
        ("5", json!("https://mcp.example.com/oauth/token/"), false),
        ("6", json!("https://other.example/oauth/token"), false),
        ("7", json!([]), false),
    ] {
        let claims = json!({
            "iss": "client-a", "sub": "client-a", "aud": aud, "jti": jti, "exp": NOW + 60,
        });
        let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
        let form = form(&[
            ("client_assertion_type", TYPE),
            ("client_assertion", &assertion),
        ]);
        let headers = HeaderMap::new();
        let presented = PresentedCredential::parse(&headers, &form).unwrap();
        let (store, now) = (MemoryStore::default(), UnixTime::from_secs(NOW));
        let verified = presented
            .verify_for(&registered, &store, &[ISSUER, endpoint], now)
            .await;
        assert_eq!(verified.is_ok(), is_accepted, "{aud}");
    }
}

#[tokio::test]
async fn forged_assertions_are_rejected() {
    let key = key();
    let registered = registered(&key);
    for changes in [
        // For another server, or for several.
        ("aud", json!("https://other.example")),
        ("aud", json!(format!("{ISSUER}/oauth/token"))),
        ("aud", json!([ISSUER, "https://other.example"])),
        ("aud", Value::Null),
        // By another party.
        ("iss", json!("client-b")),
        ("sub", json!("client-b")),
        // At another time.
        ("exp", json!(NOW)),
        ("exp", json!(NOW + 3601)),
        ("exp", Value::Null),
        ("iat", json!(NOW + 60)),
        ("nbf", json!(NOW + 60)),
        // Without an identifier by which its reuse can be noticed.
        ("jti", Value::Null),
        ("jti", json!("")),
        ("jti", json!("x".repeat(257))),
    ] {
        let store = MemoryStore::default();
        let error = assert_with(&store, &key, &registered, slice::from_ref(&changes))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidClient, "{changes:?}");
    }
    let other = self::key();
    let store = MemoryStore::default();
    let error = assert_with(&store, &other, &registered, &[])
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidClient);
}

#[tokio::test]
async fn a_client_uses_only_its_registered_method() {
    let store = MemoryStore::default();
    let secret = || Secret::new("right");
    let post = form(&[("client_id", "c"), ("client_secret", "right")]);
    let wrong_post = form(&[("client_id", "c"), ("client_secret", "wrong")]);
    let id = form(&[("client_id", "c")]);
    let none = form(&[]);
    let (no_header, header, wrong_header) =
        (HeaderMap::new(), basic("c", "right"), basic("c", "wrong"));
    for (name, registered, headers, form, is_accepted) in [
        ("public", Credential::None, &no_header, &id, true),
        (
            "public with a secret",
            Credential::None,
            &no_header,
            &post,
            false,
        ),
        (
            "public with a header",
            Credential::None,
            &header,
            &none,
            false,
        ),
        (
            "basic",
            Credential::SecretBasic(secret()),
            &header,
            &none,
            true,
        ),
        (
            "basic, wrong",
            Credential::SecretBasic(secret()),
            &wrong_header,
            &none,
            false,
        ),
        (
            "basic, in the body",
            Credential::SecretBasic(secret()),
            &no_header,
            &post,
            false,
        ),
        (
            "basic, without",
            Credential::SecretBasic(secret()),
            &no_header,
            &id,
            false,
        ),
        (
            "post",
            Credential::SecretPost(secret()),
            &no_header,
            &post,
            true,
        ),
        (
            "post, wrong",
            Credential::SecretPost(secret()),
            &no_header,
            &wrong_post,
            false,
        ),
        (
            "post, in the header",
            Credential::SecretPost(secret()),
            &header,
            &none,
            false,
        ),
        (
            "keys, with a secret",
            registered(&key()),
            &no_header,
            &post,
            false,
        ),
        ("keys, without", registered(&key()), &no_header, &id, false),
    ] {
        let result = authenticate(&store, &registered, headers, form).await;
        assert_eq!(result.is_ok(), is_accepted, "{name}");
        let code = result.err().map(|error| error.code);
        assert!(
            code.is_none_or(|code| code == ErrorCode::InvalidClient),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_request_has_one_client_and_one_credential() {
    let store = MemoryStore::default();
    let registered = Credential::SecretBasic(Secret::new("right"));
    for pairs in [
        &[("client_id", "other")][..],
        &[("client_id", "c"), ("client_secret", "right")],
        &[("client_id", "c"), ("client_id", "c")],
    ] {
        let result = authenticate(&store, &registered, &basic("c", "right"), &form(pairs)).await;
        assert_eq!(
            result.unwrap_err().code,
            ErrorCode::InvalidRequest,
            "{pairs:?}"
        );
    }
    let without_client = authenticate(&store, &registered, &HeaderMap::new(), &form(&[])).await;
    assert_eq!(without_client.unwrap_err().code, ErrorCode::InvalidClient);
}
