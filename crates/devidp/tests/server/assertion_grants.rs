//! Grants with assertions of trusted issuers (RFC 7523 section 2.1, RFC 8693).

use http::{Method, StatusCode};
use portcullis_devidp::{ClientSettings, DevIdp, DevIdpSettings, GrantType, TrustedIssuer};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{Clock, JwkSet, Secret};
use serde_json::{Value, json};

use crate::support::*;

const PLATFORM: &str = "https://platform.example";
const BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

fn trusted(issuer: &str, jwks: &Value) -> TrustedIssuer {
    TrustedIssuer {
        issuer: issuer.to_owned(),
        keys: JwkSet::parse(jwks.to_string().as_bytes()).unwrap(),
    }
}

fn client(id: &str, grant_type: GrantType) -> ClientSettings {
    ClientSettings {
        grant_types: vec![grant_type],
        ..ClientSettings::public(id)
    }
}

async fn server(trusted: TrustedIssuer) -> Server {
    Server::start(|settings| {
        settings.trusted_issuers = vec![trusted];
        let resource = ClientSettings::with_secret("resource", Secret::new("hush"));
        settings.clients = vec![
            client("workload", GrantType::JwtBearer),
            client("desktop", GrantType::TokenExchange),
            ClientSettings {
                may_introspect: true,
                ..resource
            },
        ];
    })
    .await
}

async fn is_active(server: &Server, token: &str) -> bool {
    let form = encoded(&[
        ("token", token),
        ("client_id", "resource"),
        ("client_secret", "hush"),
    ]);
    server
        .send(Method::POST, "/introspect", &[FORM], &form)
        .await
        .json()["active"]
        == true
}

/// K1: a workload exchanges the token of its platform any number of times. Other tokens are
/// rejected.
#[tokio::test]
async fn a_workload_exchanges_the_token_of_its_platform() {
    let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let server = server(trusted(PLATFORM, &json!({ "keys": [key.public_jwk()] }))).await;
    let now = server.clock.now().as_secs();
    let claims =
        json!({ "iss": PLATFORM, "sub": "job-7", "aud": server.issuer, "exp": now + 3600 });
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        claims.to_string()
    };
    let ask = async |client: &str, assertion: &str| {
        let parameters = [
            ("grant_type", BEARER),
            ("client_id", client),
            ("assertion", assertion),
            ("resource", RESOURCE),
        ];
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
        assert!(is_active(&server, &response.text("access_token")).await);
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
        let assertion = key
            .sign("JWT", with(name, value.clone()).as_bytes())
            .unwrap();
        assert_eq!(
            ask("workload", &assertion).await.error(),
            "invalid_grant",
            "{name} {value}"
        );
    }
    let stranger = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    for bad in [
        stranger.sign("JWT", claims.to_string().as_bytes()).unwrap(),
        key.sign("at+jwt", claims.to_string().as_bytes()).unwrap(),
        "rubbish".to_owned(),
    ] {
        assert_eq!(
            ask("workload", &bad).await.error(),
            "invalid_grant",
            "{bad}"
        );
    }
    assert_eq!(ask("workload", "").await.error(), "invalid_request");

    let metadata = server
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert!(
        metadata["grant_types_supported"]
            .as_array()
            .unwrap()
            .contains(&json!(BEARER))
    );
}

/// An enterprise whose users sign in at `PLATFORM`, and the server of a resource, which trusts the
/// enterprise.
struct Enterprise {
    login: SigningKey,
    enterprise: Server,
    server: Server,
}

impl Enterprise {
    async fn start() -> Self {
        let login = SigningKey::generate(Algorithm::Rs256, "one").unwrap();
        let enterprise = server(trusted(PLATFORM, &json!({ "keys": [login.public_jwk()] }))).await;
        let keys = enterprise.get("/jwks").await.json();
        let server = Server::start(|settings| {
            settings.trusted_issuers = vec![trusted(&enterprise.issuer, &keys)];
            settings.clients = vec![
                client("desktop", GrantType::JwtBearer),
                client("other", GrantType::JwtBearer),
            ];
        })
        .await;
        Self {
            login,
            enterprise,
            server,
        }
    }

    /// Returns an ID token for the client `desktop` with one claim changed.
    fn id_token(&self, typ: &str, claim: &str, value: &str) -> String {
        let now = self.enterprise.clock.now().as_secs();
        let mut claims = json!({
            "iss": PLATFORM, "sub": "zoe@example.com", "aud": "desktop", "exp": now + 600, "iat": now,
        });
        claims[claim] = json!(value);
        self.login.sign(typ, claims.to_string().as_bytes()).unwrap()
    }

    /// Returns the parameters of a valid exchange of this ID token.
    fn exchange<'a>(&'a self, id_token: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            (
                "grant_type",
                "urn:ietf:params:oauth:grant-type:token-exchange",
            ),
            ("client_id", "desktop"),
            ("requested_token_type", ID_JAG),
            (
                "subject_token_type",
                "urn:ietf:params:oauth:token-type:id_token",
            ),
            ("subject_token", id_token),
            ("audience", &self.server.issuer),
            ("resource", RESOURCE),
            ("scope", "mcp:tools"),
        ]
    }
}

/// K1: an ID token is exchanged for an identity assertion, which another server exchanges for an
/// access token once.
#[tokio::test]
async fn an_id_token_is_exchanged_for_a_token_of_another_server() {
    let fixture = Enterprise::start().await;
    let Enterprise {
        enterprise, server, ..
    } = &fixture;
    let id_token = fixture.id_token("JWT", "sub", "zoe@example.com");
    let exchange = fixture.exchange(&id_token);
    let response = enterprise.token(&exchange).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(
        response.header("cache-control"),
        Some("no-store"),
        "{}",
        response.body
    );
    assert_eq!(&*response.text("token_type"), "N_A");
    assert_eq!(&*response.text("issued_token_type"), ID_JAG);

    let assertion = response.text("access_token");
    assert!(
        !is_active(enterprise, &assertion).await,
        "it is no access token of its issuer"
    );
    assert_eq!(claims(&assertion)["scope"], "mcp:tools");
    let without_scope = enterprise
        .token(&changed(&exchange, "scope", None))
        .await
        .text("access_token");
    assert_eq!(claims(&without_scope).get("scope"), None);

    let bearer = [
        ("grant_type", BEARER),
        ("client_id", "desktop"),
        ("assertion", &*assertion),
        ("resource", RESOURCE),
    ];
    assert_eq!(
        server
            .token(&changed(&bearer, "client_id", "other"))
            .await
            .error(),
        "invalid_grant"
    );
    assert_eq!(
        server
            .token(&changed(&bearer, "resource", "http://127.0.0.1/other"))
            .await
            .error(),
        "invalid_target"
    );
    let response = server.token(&bearer).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);

    let token = claims(&response.text("access_token"));
    assert_eq!(token["sub"], "zoe@example.com");
    assert_eq!(token["aud"], json!(RESOURCE));
    assert_eq!(token["scope"], "mcp:tools");
    assert_eq!(
        server.token(&bearer).await.error(),
        "invalid_grant",
        "it counts once"
    );
}

/// K1: other tokens than ID tokens for the client are not exchanged, and every parameter except
/// `scope` is required.
#[tokio::test]
async fn other_tokens_are_not_exchanged() {
    let fixture = Enterprise::start().await;
    let id_token = fixture.id_token("JWT", "sub", "zoe@example.com");
    let exchange = fixture.exchange(&id_token);
    let response = fixture.enterprise.token(&exchange).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let assertion = response.text("access_token");
    let of_another_client = fixture.id_token("JWT", "aud", "somebody");
    let of_another_type = fixture.id_token("at+jwt", "sub", "zoe@example.com");
    let without_subject = fixture.id_token("JWT", "sub", "");
    let access_token = "urn:ietf:params:oauth:token-type:access_token";
    for (name, value, error) in [
        ("subject_token", Some(&*of_another_client), "invalid_grant"),
        ("subject_token", Some(&*of_another_type), "invalid_grant"),
        ("subject_token", Some(&*without_subject), "invalid_grant"),
        ("subject_token", Some(&*assertion), "invalid_grant"),
        ("subject_token", None, "invalid_request"),
        (
            "requested_token_type",
            Some(access_token),
            "invalid_request",
        ),
        ("requested_token_type", None, "invalid_request"),
        ("subject_token_type", Some(access_token), "invalid_request"),
        ("subject_token_type", None, "invalid_request"),
        ("audience", None, "invalid_request"),
        ("resource", None, "invalid_request"),
    ] {
        let response = fixture
            .enterprise
            .token(&changed(&exchange, name, value))
            .await;
        assert_eq!(response.error(), error, "{name} {value:?}");
    }
}

/// K1: a token has only scopes and the resource that the identity assertion grants.
#[tokio::test]
async fn an_identity_assertion_limits_the_token() {
    let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let server = server(trusted(PLATFORM, &json!({ "keys": [key.public_jwk()] }))).await;
    let now = server.clock.now().as_secs();
    for (number, (claim, value, expected)) in [
        ("scope", json!("mcp:tools mcp:admin"), ""),
        ("scope", json!("mcp:admin"), "invalid_scope"),
        ("resource", json!(RESOURCE), ""),
        (
            "resource",
            json!("http://127.0.0.1:3000/other"),
            "invalid_target",
        ),
        ("resource", json!([RESOURCE]), "invalid_target"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut claims = json!({
            "iss": PLATFORM, "sub": "zoe", "aud": server.issuer, "client_id": "workload", "exp": now + 60,
            "jti": number.to_string(),
        });
        claims[claim] = value.clone();
        let assertion = key
            .sign("oauth-id-jag+jwt", claims.to_string().as_bytes())
            .unwrap();
        let parameters = [
            ("grant_type", BEARER),
            ("client_id", "workload"),
            ("assertion", &*assertion),
            ("resource", RESOURCE),
        ];
        let response = server.token(&parameters).await;
        assert_eq!(response.error(), expected, "{claim} {value}");
        if expected.is_empty() {
            assert_eq!(response.text("scope"), "mcp:tools", "{claim} {value}");
        }
    }
}

/// Without a trusted issuer both grant types are disabled. A trusted issuer without keys is
/// rejected at start.
#[tokio::test]
async fn no_issuer_is_trusted_by_default() {
    let server =
        Server::start(|settings| settings.clients = vec![client("workload", GrantType::JwtBearer)])
            .await;
    let parameters = [
        ("grant_type", BEARER),
        ("client_id", "workload"),
        ("assertion", "x"),
    ];
    assert_eq!(
        server.token(&parameters).await.error(),
        "unsupported_grant_type"
    );
    let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let good = trusted(PLATFORM, &json!({ "keys": [key.public_jwk()] }));
    let keyless = trusted(PLATFORM, &json!({ "keys": [] }));
    for trusted_issuers in [vec![keyless], vec![good.clone(), good]] {
        let settings = DevIdpSettings {
            trusted_issuers,
            ..DevIdpSettings::default()
        };
        assert_eq!(
            DevIdp::bind(settings).await.unwrap_err().code(),
            "devidp.trusted_issuer"
        );
    }
}
