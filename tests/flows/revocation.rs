//! Tokens that are revoked at the development authorization server.

use std::net::SocketAddr;

use portcullis_devidp::{ClientSettings, DevIdp, DevIdpSettings};
use portcullis_metadata::{Secret, authorization::PkceVerifier};
use portcullis_scenarios::{Deployment, HttpResponse, Request, Scratch};

const SECRET: &str = "hush-hush";
const REDIRECT: &str = "http://127.0.0.1:4321/callback";
const ENCODED_REDIRECT: &str = "http%3A%2F%2F127.0.0.1%3A4321%2Fcallback";
const ENCODED_RESOURCE: &str = "http%3A%2F%2F127.0.0.1%3A3000%2Fmcp";

/// The development authorization server with automatic consent.
struct Idp {
    address: SocketAddr,
    issuer: String,
}

impl Idp {
    /// Starts an authorization server where the resource can introspect tokens.
    async fn start() -> Self {
        let resource = ClientSettings::with_secret("portcullis", Secret::new(SECRET));
        let idp = DevIdp::bind(DevIdpSettings {
            auto_consent: true,
            clients: vec![ClientSettings {
                may_introspect: true,
                ..resource
            }],
            ..DevIdpSettings::default()
        })
        .await
        .unwrap();
        let address = idp.address();
        let issuer = idp.issuer().as_str().to_owned();
        tokio::spawn(idp.serve(std::future::pending()));
        Self { address, issuer }
    }

    /// Registers a client and returns it with a token that was issued to it.
    async fn issue(&self) -> (String, String) {
        let metadata =
            format!(r#"{{"redirect_uris":["{REDIRECT}"],"token_endpoint_auth_method":"none"}}"#);
        let registered = Request::post("/register", metadata)
            .send(self.address)
            .await;
        let client = registered.json()["client_id"].as_str().unwrap().to_owned();

        let verifier = PkceVerifier::generate().unwrap();
        let target = format!(
            "/authorize?response_type=code&client_id={client}&redirect_uri={ENCODED_REDIRECT}&code_challenge={}\
             &code_challenge_method=S256&resource={ENCODED_RESOURCE}&scope=mcp%3Atools",
            verifier.challenge().as_str()
        );
        let granted = Request::new("GET", &target).send(self.address).await;
        let location = granted.header("location").unwrap();
        let code = location
            .split(['?', '&'])
            .find_map(|pair| pair.strip_prefix("code="))
            .unwrap();
        let exchange = format!(
            "grant_type=authorization_code&client_id={client}&code={code}&code_verifier={}\
             &redirect_uri={ENCODED_REDIRECT}&resource={ENCODED_RESOURCE}",
            verifier.secret()
        );
        let token = self.post("/token", exchange).await.json()["access_token"]
            .as_str()
            .unwrap()
            .to_owned();
        (client, token)
    }

    async fn revoke(&self, client: &str, token: &str) {
        let response = self
            .post("/revoke", format!("client_id={client}&token={token}"))
            .await;
        assert_eq!(response.status, 200, "{response:?}");
    }

    async fn post(&self, path: &str, form: String) -> HttpResponse {
        let request =
            Request::new("POST", path).header("Content-Type", "application/x-www-form-urlencoded");
        request.body(form).send(self.address).await
    }

    /// Returns a deployment with this issuer only.
    async fn deployment(&self, secret: &Scratch, validate: &str, more: &str) -> Deployment {
        let name = &self.issuer;
        let secret = secret.as_str();
        let table = format!(
            "[[issuer]]\nissuer = \"{name}\"\nvalidate = \"{validate}\"\nclient_id = \"portcullis\"\n\
             client_secret = {{ file = \"{secret}\" }}\n{more}"
        );
        Deployment::builder()
            .tables(table)
            .resource(format!(
                "issuers = [\"{name}\"]\nrequired_scopes = [\"mcp:tools\"]"
            ))
            .start()
            .await
    }
}

/// C1, D2: with a discovered endpoint, a revoked token is rejected immediately, both with
/// introspection and with `jwt+introspection`.
#[tokio::test]
async fn a_revoked_token_is_rejected_immediately() {
    let idp = Idp::start().await;
    let secret = Scratch::file("secret", SECRET);
    for (validate, more) in [
        ("introspection", "introspection_cache = \"0s\""),
        (
            "introspection",
            "introspection_cache = \"0s\"\nintrospection_auth = \"basic\"",
        ),
        ("jwt+introspection", "introspection_cache = \"0s\""),
    ] {
        let deployment = idp.deployment(&secret, validate, more).await;
        let ((client, token), (_, other)) = (idp.issue().await, idp.issue().await);
        deployment.assert_accepted("active", &token).await;
        deployment.assert_accepted("still active", &token).await;
        idp.revoke(&client, &token).await;
        deployment
            .assert_rejected([("revoked", token.clone(), "token.inactive")])
            .await;
        deployment.assert_accepted("another token", &other).await;
        for canary in [SECRET, token.as_str(), other.as_str()] {
            assert!(
                !deployment.portcullis.log().contains(canary),
                "{canary} is in the log"
            );
        }
    }
}

/// C1: without introspection a revoked token is accepted until it expires.
#[tokio::test]
async fn a_revocation_has_no_effect_without_introspection() {
    let idp = Idp::start().await;
    let name = &idp.issuer;
    let deployment = Deployment::builder()
        .tables(format!("[[issuer]]\nissuer = \"{name}\""))
        .resource(format!("issuers = [\"{name}\"]"))
        .start()
        .await;
    let (client, token) = idp.issue().await;
    idp.revoke(&client, &token).await;
    deployment
        .assert_accepted("revoked, without introspection", &token)
        .await;
}

/// D3: with the defaults, a token that was revoked before its first use is rejected, and so is one
/// of another server.
#[tokio::test]
async fn the_defaults_reject_inactive_tokens() {
    let idp = Idp::start().await;
    let secret = Scratch::file("secret", SECRET);
    let deployment = idp.deployment(&secret, "introspection", "").await;
    let (client, token) = idp.issue().await;
    idp.revoke(&client, &token).await;
    deployment
        .assert_rejected([
            ("revoked", token, "token.inactive"),
            ("made up", "abc".to_owned(), "token.inactive"),
        ])
        .await;
    let (_, foreign) = Idp::start().await.issue().await;
    deployment
        .assert_rejected([("another server's", foreign, "token.issuer_unknown")])
        .await;
}
