//! Signed assertions authenticate a client once (RFC 7523); invalid ones are rejected.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_devidp::{ClientAuthentication, ClientSettings, GrantType};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{Clock, JwkSet};
use serde_json::{Value, json};

use crate::support::*;

const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

struct Signer {
    server: Server,
    key: SigningKey,
}

impl Signer {
    /// Starts a server with a client that authenticates with a new key.
    async fn start() -> Self {
        let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
        let jwks =
            JwkSet::parse(json!({ "keys": [key.public_jwk()] }).to_string().as_bytes()).unwrap();
        let client = ClientSettings {
            authentication: ClientAuthentication::PrivateKeyJwt(jwks),
            grant_types: vec![GrantType::ClientCredentials],
            may_introspect: true,
            ..ClientSettings::public("machine")
        };
        let server = Server::start(|settings| {
            settings.auto_consent = true;
            settings.clients = vec![client];
        })
        .await;
        Self { server, key }
    }

    /// Valid claims with one claim changed, or removed if the value is null.
    fn claims(&self, name: &str, value: Value) -> Value {
        let now = self.server.clock.now().as_secs();
        let jti = portcullis_metadata::authorization::PkceVerifier::generate()
            .unwrap()
            .secret()
            .to_owned();
        let mut claims = json!({
            "iss": "machine", "sub": "machine", "aud": self.server.issuer, "iat": now, "exp": now + 60, "jti": jti,
        });
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        claims
    }

    fn sign(&self, claims: &Value) -> String {
        self.key.sign("JWT", claims.to_string().as_bytes()).unwrap()
    }

    /// Requests a token for the client itself with this assertion.
    async fn request_token(&self, assertion: &str) -> Response {
        let parameters = [
            ("grant_type", "client_credentials"),
            ("resource", RESOURCE),
            ("client_assertion_type", TYPE),
            ("client_assertion", assertion),
        ];
        self.server.token(&parameters).await
    }
}

/// K1: a signed assertion authenticates a client at the token and introspection endpoints, once.
#[tokio::test]
async fn a_signed_assertion_authenticates_the_client_once() {
    let signer = Signer::start().await;
    let assertion = signer.sign(&signer.claims("x", json!(1)));
    let response = signer.request_token(&assertion).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);

    let again = signer.request_token(&assertion).await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
    assert_eq!(&*again.error(), "invalid_client");
    assert!(again.text("error_description").contains("used before"));

    let assertion = signer.sign(&signer.claims("x", json!(1)));
    let token = response.text("access_token");
    let form = [
        ("token", &*token),
        ("client_assertion_type", TYPE),
        ("client_assertion", &*assertion),
    ];
    let response = signer
        .server
        .send(Method::POST, "/introspect", &[FORM], &encoded(&form))
        .await;
    assert_eq!(response.json()["active"], true, "{}", response.body);
}

/// K1: the audience of an assertion must be exactly the issuer, and its lifetime must be short and
/// current.
#[tokio::test]
async fn invalid_assertions_are_rejected() {
    let signer = Signer::start().await;
    let now = signer.server.clock.now().as_secs();
    let issuer = signer.server.issuer.clone();
    let token_endpoint = format!("{issuer}/token");
    for (name, value) in [
        ("aud", json!(token_endpoint)),
        ("aud", json!(format!("{issuer}/"))),
        ("aud", json!([issuer, token_endpoint])),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("iss", json!("somebody")),
        ("sub", json!("somebody")),
        ("sub", Value::Null),
        ("exp", json!(now)),
        ("exp", json!(now + 3601)),
        ("exp", Value::Null),
        ("nbf", json!(now + 11)),
        ("iat", json!(now + 11)),
        ("jti", Value::Null),
        ("jti", json!("")),
        ("jti", json!("a".repeat(257))),
    ] {
        let response = signer
            .request_token(&signer.sign(&signer.claims(name, value.clone())))
            .await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{name} {value}");
        assert_eq!(&*response.error(), "invalid_client", "{name} {value}");
    }
    let good = signer.claims("aud", json!([issuer]));
    let stranger = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let forged = stranger.sign("JWT", good.to_string().as_bytes()).unwrap();
    let typed = signer
        .key
        .sign("at+jwt", good.to_string().as_bytes())
        .unwrap();
    for bad in [&*forged, &typed, "rubbish", ""] {
        assert_eq!(
            signer.request_token(bad).await.error(),
            "invalid_client",
            "{bad}"
        );
    }
    assert_eq!(
        signer.request_token(&signer.sign(&good)).await.status,
        StatusCode::OK,
        "the audience may be an array of one"
    );

    let typed = signer.key.sign(
        "client-authentication+jwt",
        signer.claims("x", json!(1)).to_string().as_bytes(),
    );
    assert_eq!(
        signer.request_token(&typed.unwrap()).await.status,
        StatusCode::OK
    );
}

/// An assertion cannot be combined with another method and requires its type.
#[tokio::test]
async fn an_assertion_cannot_be_combined() {
    let signer = Signer::start().await;
    let assertion = signer.sign(&signer.claims("x", json!(1)));
    let good = [
        ("grant_type", "client_credentials"),
        ("resource", RESOURCE),
        ("client_assertion_type", TYPE),
        ("client_assertion", &*assertion),
    ];
    for (name, value, error) in [
        ("client_secret", Some("hush"), "invalid_request"),
        ("client_id", Some("somebody"), "invalid_request"),
        ("client_assertion_type", None, "invalid_client"),
        ("client_assertion_type", Some("jwt"), "invalid_client"),
        ("client_assertion", None, "invalid_client"),
    ] {
        assert_eq!(
            signer
                .server
                .token(&changed(&good, name, value))
                .await
                .error(),
            error,
            "{name}"
        );
    }
    let response = signer
        .server
        .token(&changed(&good, "client_id", "machine"))
        .await;
    assert_eq!(
        response.status,
        StatusCode::OK,
        "none of these used the assertion up: {}",
        response.body
    );
}

/// A used assertion is remembered until it expires.
#[tokio::test]
async fn a_used_assertion_is_remembered_until_it_expires() {
    let signer = Signer::start().await;
    let now = signer.server.clock.now().as_secs();
    let assertion = signer.sign(&signer.claims("exp", json!(now + 3600)));
    assert_eq!(
        signer.request_token(&assertion).await.status,
        StatusCode::OK
    );
    signer.server.clock.advance(Duration::from_secs(3599));
    assert!(
        signer
            .request_token(&assertion)
            .await
            .text("error_description")
            .contains("used before")
    );
    signer.server.clock.advance(Duration::from_secs(1));
    assert!(
        signer
            .request_token(&assertion)
            .await
            .text("error_description")
            .contains("expired")
    );
}

/// A client registers its keys and authenticates with them in the code flow.
#[tokio::test]
async fn keys_can_be_registered() {
    let server = Server::with_auto_consent().await;
    let key = SigningKey::generate(Algorithm::EdDsa, "one").unwrap();
    let jwks = json!({ "keys": [key.public_jwk()] });
    let register = async |jwks: Value| {
        let method = "private_key_jwt";
        server
            .register_with(&json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": method, "jwks": jwks }))
            .await
    };
    for bad in [
        Value::Null,
        json!({ "keys": [] }),
        json!("keys"),
        json!({ "keys": [{ "kty": "oct", "k": "AA" }] }),
    ] {
        assert_eq!(register(bad).await.error(), "invalid_client_metadata");
    }
    let registered = register(jwks.clone()).await;
    assert_eq!(registered.status, StatusCode::CREATED);
    assert_eq!(registered.json()["jwks"], jwks);

    let client = registered.text("client_id");
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    let now = server.clock.now().as_secs();
    let claims =
        json!({ "iss": client, "sub": client, "aud": server.issuer, "exp": now + 60, "jti": "1" });
    let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
    let parameters = token_request(&client, &code, &verifier);
    assert_eq!(server.token(&parameters).await.error(), "invalid_client");

    let parameters = [
        &parameters[..],
        &[
            ("client_assertion_type", TYPE),
            ("client_assertion", &assertion),
        ],
    ]
    .concat();
    assert_eq!(server.token(&parameters).await.status, StatusCode::OK);
}
