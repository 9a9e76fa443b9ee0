//! The development server's secrets, codes and tokens in its own output.

use std::net::SocketAddr;

use portcullis_metadata::authorization::PkceVerifier;
use portcullis_scenarios::{INITIALIZE, Portcullis, Request};
use portcullis_testkit::Canaries;
use serde_json::Value;

/// J2: the development authorization server, from registration to a token that is used, rejected
/// and revoked.
#[tokio::test]
async fn development_server() {
    let arguments = [
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ];
    let demo = Portcullis::start(&arguments).await;
    let line = demo
        .logged("authorization server is listening", |line| {
            line["issuer"].is_string()
        })
        .await;
    let idp: SocketAddr = line["issuer"]
        .as_str()
        .unwrap()
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let redirect = "http%3A%2F%2F127.0.0.1%3A4321%2Fcallback";
    let resource = encoded_resource(&demo.address());

    let metadata = r#"{"redirect_uris":["http://127.0.0.1:4321/callback"],"token_endpoint_auth_method":"client_secret_post"}"#;
    let registered = Request::post("/register", metadata).send(idp).await.json();
    let text = |value: &Value, name: &str| {
        value[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {value}"))
            .to_owned()
    };
    let client = text(&registered, "client_id");
    let secret = text(&registered, "client_secret");
    let verifier = PkceVerifier::generate().unwrap();
    let target = format!(
        "/authorize?response_type=code&client_id={client}&redirect_uri={redirect}&code_challenge={}\
         &code_challenge_method=S256&resource={resource}&scope=mcp%3Atools&state=canary-of-the-state",
        verifier.challenge().as_str()
    );
    let granted = Request::new("GET", &target).send(idp).await;
    let location = granted
        .header("location")
        .unwrap_or_else(|| panic!("{granted:?}"));
    let code = location
        .split(['?', '&'])
        .find_map(|pair| pair.strip_prefix("code="))
        .unwrap()
        .to_owned();
    let form = async |path: &str, body: String| {
        let request =
            Request::new("POST", path).header("Content-Type", "application/x-www-form-urlencoded");
        request.body(body).send(idp).await
    };
    let client_form = format!("client_id={client}&client_secret={secret}");
    let exchange = format!(
        "grant_type=authorization_code&code={code}&redirect_uri={redirect}&code_verifier={}&{client_form}",
        verifier.secret()
    );
    let issued = form("/token", exchange.clone()).await;
    assert_eq!(issued.status, 200, "{issued:?}");

    let token = text(&issued.json(), "access_token");
    let endpoint = async |token: &str| {
        Request::post("/mcp", INITIALIZE)
            .bearer(token)
            .send(demo.address())
            .await
    };
    let opened = endpoint(&token).await;
    assert_eq!(opened.status, 200, "{opened:?}");

    let session = opened.header("mcp-session-id").unwrap().to_owned();
    // Invalid values of each secret.
    assert_eq!(
        form("/token", exchange.clone()).await.status,
        400,
        "a code is used once"
    );
    let wrong = exchange.replace(&secret, "canary-of-a-wrong-secret");
    assert!(form("/token", wrong).await.status >= 400);
    assert_eq!(endpoint("canary-of-a-wrong-token").await.status, 401);
    assert_eq!(
        form("/revoke", format!("token={token}&{client_form}"))
            .await
            .status,
        200
    );

    for texts in [
        &["issued a code", &*client][..],
        &["issued an access token", &client],
        &["session opened"],
    ] {
        demo.logged_line(texts).await;
    }
    let mut canaries = Canaries::from_iter([
        ("the code", &*code),
        ("the client's secret", &secret),
        ("the verifier", verifier.secret()),
        ("the access token", &token),
        ("the session", &session),
        ("the state", "canary-of-the-state"),
        ("a wrong secret", "canary-of-a-wrong-secret"),
        ("a wrong token", "canary-of-a-wrong-token"),
    ]);
    if let Some(refresh) = issued.json()["refresh_token"].as_str() {
        canaries.add("the refresh token", refresh);
    }
    let finished = demo.stop().await;
    assert!(finished.stderr.lines().count() > 10, "{}", finished.stderr);
    canaries.assert_absent("the log", &finished.stderr);
    canaries.assert_absent("standard output", &finished.stdout);
}

/// Returns the demo's resource, percent-encoded.
fn encoded_resource(address: &SocketAddr) -> String {
    format!("http://{address}/mcp")
        .replace(':', "%3A")
        .replace('/', "%2F")
}
