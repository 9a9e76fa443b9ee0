//! Grants with assertions of trusted issuers (RFC 7523 section 2.1, RFC 8693).

use http::StatusCode;
use portcullis_devidp::{ClientSettings, DevIdp, DevIdpSettings, GrantType, TrustedIssuer};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{Clock, JwkSet};
use serde_json::{Value, json};

use crate::support::*;

const PLATFORM: &str = "https://platform.example";
const BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

fn trusted(issuer: &str, jwks: &Value) -> TrustedIssuer {
    TrustedIssuer { issuer: issuer.to_owned(), keys: JwkSet::parse(jwks.to_string().as_bytes()).unwrap() }
}

fn client(id: &str, grant_type: GrantType) -> ClientSettings {
    ClientSettings { grant_types: vec![grant_type], ..ClientSettings::public(id) }
}

async fn server(trusted: TrustedIssuer) -> Server {
    Server::start(|settings| {
        settings.trusted_issuers = vec![trusted];
        settings.clients = vec![client("workload", GrantType::JwtBearer), client("desktop", GrantType::TokenExchange)];
    })
    .await
}

/// K1: a workload exchanges the token of its platform any number of times. Other tokens are rejected.
#[tokio::test]
async fn a_workload_exchanges_the_token_of_its_platform() {
    let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let server = server(trusted(PLATFORM, &json!({ "keys": [key.public_jwk()] }))).await;
    let now = server.clock.now().as_secs();
    let claims = json!({ "iss": PLATFORM, "sub": "job-7", "aud": server.issuer, "exp": now + 3600 });
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        claims.to_string()
    };
    let ask = async |client: &str, assertion: &str| {
        let parameters =
            [("grant_type", BEARER), ("client_id", client), ("assertion", assertion), ("resource", RESOURCE)];
        server.token(&parameters).await
    };
    let good = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
    for _ in 0..2 {
        let response = ask("workload", &good).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        let token = crate::support::claims(&response.text("access_token"));
        assert_eq!(token["sub"], "job-7");
        assert_eq!(token["client_id"], "workload");
        assert_eq!(token["aud"], json!(RESOURCE));
        assert!(response.json().get("refresh_token").is_none());
    }
    assert_eq!(ask("desktop", &good).await.error(), "unauthorized_client");

    for (name, value) in [
        ("aud", json!("https://other.example")),
        ("aud", json!([server.issuer, "https://other.example"])),
        ("iss", json!("https://stranger.example")),
        ("iss", Value::Null),
        ("exp", json!(now)),
        ("exp", json!(now + 3601)),
        ("sub", Value::Null),
        ("sub", json!("")),
    ] {
        let assertion = key.sign("JWT", with(name, value.clone()).as_bytes()).unwrap();
        assert_eq!(ask("workload", &assertion).await.error(), "invalid_grant", "{name} {value}");
    }
    let stranger = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    for bad in [
        stranger.sign("JWT", claims.to_string().as_bytes()).unwrap(),
        key.sign("at+jwt", claims.to_string().as_bytes()).unwrap(),
        "rubbish".to_owned(),
    ] {
        assert_eq!(ask("workload", &bad).await.error(), "invalid_grant", "{bad}");
    }
    assert_eq!(ask("workload", "").await.error(), "invalid_request");

    let metadata = server.get("/.well-known/oauth-authorization-server").await.json();
    assert!(metadata["grant_types_supported"].as_array().unwrap().contains(&json!(BEARER)));
}

/// K1: an ID token is exchanged for an identity assertion, which another server exchanges for an access token once.
#[tokio::test]
async fn an_id_token_is_exchanged_for_a_token_of_another_server() {
    let login = SigningKey::generate(Algorithm::Rs256, "one").unwrap();
    let enterprise = server(trusted(PLATFORM, &json!({ "keys": [login.public_jwk()] }))).await;
    let keys = enterprise.get("/jwks").await.json();
    let server = Server::start(|settings| {
        settings.trusted_issuers = vec![trusted(&enterprise.issuer, &keys)];
        settings.clients = vec![client("desktop", GrantType::JwtBearer), client("other", GrantType::JwtBearer)];
    })
    .await;
    let now = enterprise.clock.now().as_secs();
    let id_token = |audience: &str| {
        let claims =
            json!({ "iss": PLATFORM, "sub": "zoe@example.com", "aud": audience, "exp": now + 600, "iat": now });
        login.sign("JWT", claims.to_string().as_bytes()).unwrap()
    };
    let subject_token = id_token("desktop");
    let exchange = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("client_id", "desktop"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("subject_token", &*subject_token),
        ("audience", &*server.issuer),
        ("resource", RESOURCE),
        ("scope", "mcp:tools"),
    ];
    let response = enterprise.token(&exchange).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.header("cache-control"), Some("no-store"), "{}", response.body);
    assert_eq!(&*response.text("token_type"), "N_A");
    assert_eq!(&*response.text("issued_token_type"), exchange[2].1);

    let assertion = response.text("access_token");
    let others = id_token("somebody");
    for (name, value, error) in [
        ("subject_token", Some(&*others), "invalid_grant"),
        ("subject_token", Some(&*assertion), "invalid_grant"),
        ("subject_token", None, "invalid_request"),
        ("requested_token_type", Some("urn:ietf:params:oauth:token-type:access_token"), "invalid_request"),
        ("subject_token_type", Some("urn:ietf:params:oauth:token-type:access_token"), "invalid_request"),
        ("audience", None, "invalid_request"),
        ("resource", None, "invalid_request"),
    ] {
        assert_eq!(enterprise.token(&changed(&exchange, name, value)).await.error(), error, "{name}");
    }

    let bearer = [("grant_type", BEARER), ("client_id", "desktop"), ("assertion", &*assertion), ("resource", RESOURCE)];
    assert_eq!(server.token(&changed(&bearer, "client_id", "other")).await.error(), "invalid_grant");
    assert_eq!(server.token(&changed(&bearer, "resource", "http://127.0.0.1/other")).await.error(), "invalid_target");
    let response = server.token(&bearer).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);

    let token = claims(&response.text("access_token"));
    assert_eq!(token["sub"], "zoe@example.com");
    assert_eq!(token["aud"], json!(RESOURCE));
    assert_eq!(token["scope"], "mcp:tools");
    assert_eq!(server.token(&bearer).await.error(), "invalid_grant", "it counts once");
}

/// Without a trusted issuer both grant types are disabled. A trusted issuer without keys is rejected at start.
#[tokio::test]
async fn no_issuer_is_trusted_by_default() {
    let server = Server::start(|settings| settings.clients = vec![client("workload", GrantType::JwtBearer)]).await;
    let parameters = [("grant_type", BEARER), ("client_id", "workload"), ("assertion", "x")];
    assert_eq!(server.token(&parameters).await.error(), "unsupported_grant_type");
    let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let good = trusted(PLATFORM, &json!({ "keys": [key.public_jwk()] }));
    let keyless = trusted(PLATFORM, &json!({ "keys": [] }));
    for trusted_issuers in [vec![keyless], vec![good.clone(), good]] {
        let settings = DevIdpSettings { trusted_issuers, ..DevIdpSettings::default() };
        assert_eq!(DevIdp::bind(settings).await.unwrap_err().code(), "devidp.trusted_issuer");
    }
}
