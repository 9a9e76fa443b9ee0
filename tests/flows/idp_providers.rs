//! `portcullis idp` with `--like` and `--client-auth`, the device flow, forgotten clients and
//! configured claims.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::authorization::PkceVerifier;
use portcullis_scenarios::{HttpResponse, Portcullis, Request, Scratch};
use serde_json::{Value, json};

use crate::idp::{Idp, REDIRECT};

/// Returns a parameter of the redirect of an authorization response.
fn redirect_parameter(response: &HttpResponse, name: &str) -> Option<String> {
    let location = response.header("location")?;
    let mut pairs = location
        .split(['?', '&'])
        .filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    pairs.next().map(str::to_owned)
}

async fn authorize(idp: &Idp, verifier: &PkceVerifier, parameters: &str) -> HttpResponse {
    let target = format!(
        "{}?response_type=code&state=s&redirect_uri={REDIRECT}&code_challenge={}&code_challenge_method=S256&{parameters}",
        idp.path("authorize"),
        verifier.challenge().as_str()
    );
    idp.send(Request::new("GET", &target)).await
}

fn claims(token: &str) -> Value {
    serde_json::from_slice(
        &URL_SAFE_NO_PAD
            .decode(token.split('.').nth(1).unwrap())
            .unwrap(),
    )
    .unwrap()
}

/// Returns a file of clients, and the file of the client's secret.
fn clients() -> (Scratch, Scratch) {
    let secret = Scratch::file("secret", "hush\n");
    let text = format!(
        "[[client]]\nid = \"web\"\nsecret = {{ file = \"{}\" }}\nauth_method = \"client_secret_post\"\n\
         redirect_uris = [\"http://127.0.0.1/callback\"]\n",
        secret.as_str()
    );
    (Scratch::file("clients.toml", &text), secret)
}

/// K1: `--like entra` rejects `resource`, takes prefixed scopes, and issues tokens with the claims
/// of Entra ID and of `--claim`.
#[tokio::test]
async fn like_entra() {
    let (clients, _secret) = clients();
    let arguments = [
        "--like",
        "entra",
        "--auto-consent",
        "--clients",
        clients.as_str(),
        "--claim",
        "groups=[\"a\"]",
        "--claim",
        "team=core",
    ];
    let idp = Idp::start(&arguments).await;
    let metadata = idp
        .send(Request::new(
            "GET",
            &idp.path(".well-known/openid-configuration"),
        ))
        .await
        .json();
    assert!(metadata["code_challenge_methods_supported"].is_null());
    assert!(metadata["registration_endpoint"].is_null());

    let verifier = PkceVerifier::generate().unwrap();
    let scope =
        "scope=api%3A%2F%2F00001111-aaaa-2222-bbbb-3333cccc4444%2Fmcp%3Atools&client_id=web";
    let rejected = authorize(
        &idp,
        &verifier,
        &format!("{scope}&resource=http%3A%2F%2F127.0.0.1%3A3000%2Fmcp"),
    )
    .await;
    assert_eq!(
        redirect_parameter(&rejected, "error").as_deref(),
        Some("invalid_target")
    );
    assert!(
        redirect_parameter(&rejected, "error_description")
            .unwrap()
            .starts_with("AADSTS9010010")
    );

    let code = redirect_parameter(&authorize(&idp, &verifier, scope).await, "code").unwrap();
    let form = format!(
        "grant_type=authorization_code&client_id=web&client_secret=hush&code={code}&code_verifier={}&redirect_uri={REDIRECT}",
        verifier.secret()
    );
    let tokens = idp.post("token", form).await.json();
    let payload = claims(tokens["access_token"].as_str().unwrap());
    assert_eq!(payload["aud"], "00001111-aaaa-2222-bbbb-3333cccc4444");
    assert_eq!(payload["scp"], "mcp:tools");
    assert_eq!(payload["groups"], json!(["a"]));
    assert_eq!(payload["team"], "core");
}

/// K1: `--like authentik` ignores `resource`: the audience is the client, unless
/// `--default-resource` stands for a scope mapping.
#[tokio::test]
async fn like_authentik() {
    const RESOURCE: &str = "http://127.0.0.1:3000/mcp";
    for (options, audience) in [
        (&[][..], "web"),
        (&["--default-resource", RESOURCE][..], RESOURCE),
    ] {
        let (clients, _secret) = clients();
        let common = [
            "--like",
            "authentik",
            "--auto-consent",
            "--clients",
            clients.as_str(),
        ];
        let idp = Idp::start(&[&common[..], options].concat()).await;
        assert!(
            idp.issuer.ends_with("/application/o/mcp/"),
            "{}",
            idp.issuer
        );
        let metadata = idp
            .send(Request::new(
                "GET",
                &idp.path(".well-known/openid-configuration"),
            ))
            .await
            .json();
        assert_eq!(metadata["issuer"], *idp.issuer);
        assert!(metadata["registration_endpoint"].is_null());

        let verifier = PkceVerifier::generate().unwrap();
        let resource = "resource=http%3A%2F%2F127.0.0.1%3A3999%2Fother";
        let response = authorize(
            &idp,
            &verifier,
            &format!("client_id=web&scope=mcp%3Atools&{resource}"),
        )
        .await;
        assert_eq!(redirect_parameter(&response, "iss"), None);
        let code = redirect_parameter(&response, "code").unwrap();
        let form = format!(
            "grant_type=authorization_code&client_id=web&client_secret=hush&code={code}&code_verifier={}&redirect_uri={REDIRECT}",
            verifier.secret()
        );
        let tokens = idp.post("token", form).await.json();
        let payload = claims(tokens["access_token"].as_str().unwrap());
        assert_eq!(payload["aud"], audience);
        assert_eq!(payload["azp"], "web");
        assert_eq!(payload["scope"], "mcp:tools");
        assert!(payload["client_id"].is_null());
    }
}

/// K1: each provider that `--like` accepts has its own form of issuers.
#[tokio::test]
async fn every_provider_starts() {
    let providers = [
        ("entra", "/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0"),
        ("entra-v1", "/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0"),
        ("google", ""),
        ("github", "/login/oauth"),
        ("github-app", "/login/oauth"),
        ("okta", "/oauth2/default"),
        ("auth0", "/"),
        ("keycloak", "/realms/mcp"),
        ("authentik", "/application/o/mcp/"),
        ("cognito", "/us-west-2_example"),
    ];
    for (provider, issuer_path) in providers {
        let idp = Idp::start(&["--like", provider]).await;
        assert_eq!(idp.issuer_path(), issuer_path, "{provider}");
    }
    let unknown = Portcullis::run(&["idp", "--like", "azure"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let names = providers.map(|(provider, _)| provider).join(", ");
    assert!(
        unknown
            .stderr
            .contains(&format!("[possible values: {names}]")),
        "{unknown:?}"
    );
}

/// K1: the admin API approves the device flow.
#[tokio::test]
async fn a_device_is_approved_by_the_admin_api() {
    let idp = Idp::start(&["--admin"]).await;
    let device = "urn:ietf:params:oauth:grant-type:device_code";
    let body = json!({ "token_endpoint_auth_method": "none", "grant_types": [device] }).to_string();
    let client = idp
        .send(Request::post(&idp.path("register"), body))
        .await
        .json();
    let id = client["client_id"].as_str().unwrap();
    let target = format!("client_id={id}&resource=http%3A%2F%2F127.0.0.1%3A3000%2Fmcp");
    let started = idp.post("device_authorization", target).await.json();
    let poll = format!(
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&client_id={id}&device_code={}",
        started["device_code"].as_str().unwrap()
    );
    assert_eq!(
        idp.post("token", poll.clone()).await.json()["error"],
        "authorization_pending"
    );
    assert_eq!(idp.post("token", poll).await.json()["error"], "slow_down");

    let page = started["verification_uri_complete"]
        .as_str()
        .unwrap()
        .strip_prefix(&*idp.issuer)
        .unwrap();
    let page = idp.send(Request::new("GET", page)).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains(started["user_code"].as_str().unwrap()));

    let decision = json!({ "user_code": started["user_code"], "decision": "allow", "user": "zoe" })
        .to_string();
    assert_eq!(
        idp.send(Request::post("/admin/device", decision.as_str()))
            .await
            .status,
        204
    );
    assert_eq!(
        idp.send(Request::post("/admin/device", decision.as_str()))
            .await
            .status,
        404
    );
}

/// K1: a client manages its registration, and a forgotten one gets an error page without a
/// redirect.
#[tokio::test]
async fn a_forgotten_client_gets_an_error_page() {
    let idp = Idp::start(&[
        "--admin",
        "--auto-consent",
        "--default-resource",
        "http://127.0.0.1:3000/mcp",
    ])
    .await;
    let body =
        r#"{"redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"none"}"#;
    let client = idp.send(Request::post("/register", body)).await.json();
    let id = client["client_id"].as_str().unwrap();
    let uri = client["registration_client_uri"]
        .as_str()
        .unwrap()
        .strip_prefix(&*idp.issuer)
        .unwrap();
    let token = client["registration_access_token"].as_str().unwrap();
    assert_eq!(
        idp.send(Request::new("GET", uri).bearer(token))
            .await
            .json(),
        client
    );

    let verifier = PkceVerifier::generate().unwrap();
    let parameters = format!("client_id={id}");
    assert!(redirect_parameter(&authorize(&idp, &verifier, &parameters).await, "code").is_some());

    assert_eq!(
        idp.send(Request::post(
            "/admin/forget",
            json!({ "client_id": id }).to_string()
        ))
        .await
        .status,
        204
    );
    let page = authorize(&idp, &verifier, &parameters).await;
    assert_eq!(page.status, 400);
    assert_eq!(page.header("location"), None);
    assert_eq!(
        idp.send(Request::new("GET", uri).bearer(token))
            .await
            .status,
        401
    );
}

/// K1: `--client-auth python-sdk` lists and registers `client_secret_post`.
#[tokio::test]
async fn client_authentication_like_the_python_sdk() {
    let idp = Idp::start(&["--client-auth", "python-sdk"]).await;
    let metadata = idp
        .send(Request::new(
            "GET",
            "/.well-known/oauth-authorization-server",
        ))
        .await
        .json();
    assert_eq!(
        metadata["token_endpoint_auth_methods_supported"],
        json!(["client_secret_post", "client_secret_basic"])
    );
    let body = r#"{"redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"client_secret_basic"}"#;
    let client = idp.send(Request::post("/register", body)).await.json();
    assert_eq!(client["token_endpoint_auth_method"], "client_secret_post");
}

/// K1: an invalid claim causes an error of one line with the fix.
#[tokio::test]
async fn an_invalid_claim_causes_one_line() {
    for (claim, message) in [("groups", "NAME=VALUE"), ("iss=x", "\"iss\" cannot be set")] {
        let finished = Portcullis::run(&["idp", "--listen", "127.0.0.1:0", "--claim", claim]).await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(finished.stderr.contains(message), "{finished:?}");
    }
}
