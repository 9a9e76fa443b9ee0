//! The code flow, from registration to a verified token.

use http::{Method, StatusCode};
use portcullis_devidp::{SigningAlgorithm, TokenHeaderType};
use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::JwkSet;
use serde_json::{Value, json};

use crate::support::*;

/// Verifies a token with the published keys and returns its algorithm, type and claims.
async fn verified(server: &Server, token: &str) -> (Algorithm, String, Value) {
    let jwks = JwkSet::parse(server.get("/jwks").await.body.as_bytes()).unwrap();
    let (keys, rejected) = KeySet::from_jwks(
        &jwks,
        AlgorithmSet::from_iter([Algorithm::Rs256, Algorithm::Es256]),
    )
    .unwrap();
    assert!(rejected.is_empty());
    let compact = CompactJws::parse(token, 16 * 1024).unwrap();
    let claims = serde_json::from_slice(keys.verify(&compact).unwrap().bytes()).unwrap();
    let header = compact.header();
    (header.alg(), header.typ().unwrap().to_owned(), claims)
}

/// K1: consent in the browser leads to a code and to a token with the specified claims.
#[tokio::test]
async fn the_client_gets_a_token_after_consent() {
    let server = Server::start(|_| {}).await;
    let client = server.register().await;
    let verifier = verifier();
    let page = server
        .authorize(&authorization_request(&client, verifier.challenge()))
        .await;
    assert_eq!(page.status, StatusCode::OK);

    let origin = format!("http://{}", server.address);
    let cookie = page.cookie();
    let ticket = page.ticket();
    let form = encoded(&[("ticket", &ticket), ("user", "bob"), ("decision", "allow")]);
    let headers = [FORM, ("origin", &origin), ("cookie", &cookie)];
    let response = server
        .send(Method::POST, "/authorize/consent", &headers, &form)
        .await;
    assert_eq!(response.status, StatusCode::SEE_OTHER);
    assert_eq!(
        response.redirect_parameter("state").as_deref(),
        Some("a state & more")
    );
    assert_eq!(
        response.redirect_parameter("iss").as_deref(),
        Some(&*server.issuer)
    );
    assert!(
        response
            .location()
            .unwrap()
            .as_str()
            .starts_with(&format!("{REDIRECT}?"))
    );

    let code = response.redirect_parameter("code").unwrap();

    let response = server
        .token(&token_request(&client, &code, &verifier))
        .await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let body = response.json();
    assert_eq!(body["token_type"], "Bearer");
    assert_eq!(body["expires_in"], 300);
    assert_eq!(body["scope"], "mcp:tools");

    let (algorithm, typ, claims) = verified(&server, body["access_token"].as_str().unwrap()).await;
    assert_eq!(algorithm, Algorithm::Rs256);
    assert_eq!(&*typ, "JWT");
    let iat = claims["iat"].as_u64().unwrap();
    let expected = json!({
        "exp": iat + 300, "iat": iat, "auth_time": iat, "jti": claims["jti"], "iss": server.issuer, "aud": RESOURCE,
        "sub": "bob", "typ": "Bearer", "azp": client, "client_id": client, "sid": claims["sid"], "scope": "mcp:tools",
    });
    assert_eq!(claims, expected);
    assert!(claims["jti"].as_str().unwrap().len() >= 22);
    assert!(claims["sid"].as_str().unwrap().len() >= 22);
}

/// K1: ES256 and `at+jwt` can be configured.
#[tokio::test]
async fn tokens_can_be_es256_and_at_jwt() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.signing_algorithm = SigningAlgorithm::Es256;
        settings.token_header_type = TokenHeaderType::AtJwt;
        settings.access_token_lifetime = std::time::Duration::from_secs(30);
    })
    .await;
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    let body = server
        .token(&token_request(&client, &code, &verifier))
        .await
        .json();
    assert_eq!(body["expires_in"], 30);

    let (algorithm, typ, claims) = verified(&server, body["access_token"].as_str().unwrap()).await;
    assert_eq!(algorithm, Algorithm::Es256);
    assert_eq!(&*typ, "at+jwt");
    assert_eq!(claims["sub"], "alice");
}

/// Automatic consent redirects immediately, for the user in `login_hint`.
#[tokio::test]
async fn automatic_consent_redirects_immediately() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let mut parameters = authorization_request(&client, verifier.challenge());
    parameters.push(("login_hint", "carol"));
    let response = server.authorize(&parameters).await;
    assert_eq!(response.status, StatusCode::FOUND);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let code = response.redirect_parameter("code").unwrap();
    let body = server
        .token(&token_request(&client, &code, &verifier))
        .await
        .json();
    let (.., claims) = verified(&server, body["access_token"].as_str().unwrap()).await;
    assert_eq!(claims["sub"], "carol");
}

/// Automatic consent never sends a code to another machine.
#[tokio::test]
async fn automatic_consent_covers_loopback_only() {
    let server = Server::with_auto_consent().await;
    let other_host = "https://client.example/callback";
    let body = json!({ "redirect_uris": [other_host], "token_endpoint_auth_method": "none" });
    let registered = server.register_with(&body).await.json();
    let verifier = verifier();
    let id = registered["client_id"].as_str().unwrap();
    let parameters = authorization_request(id, verifier.challenge());
    let response = server
        .authorize(&changed(&parameters, "redirect_uri", other_host))
        .await;
    assert_eq!(response.status, StatusCode::OK);
    // A client without a name has its identifier on the page.
    assert!(response.body.contains(&format!("Allow <bdi>{id}</bdi>")));
    assert!(response.body.contains("the identifier of the application"));
}

/// The port of a loopback redirect URI may differ from the registered one.
#[tokio::test]
async fn a_loopback_port_may_differ() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let other = "http://127.0.0.1:5999/callback";
    let parameters = authorization_request(&client, verifier.challenge());
    let response = server
        .authorize(&changed(&parameters, "redirect_uri", other))
        .await;
    assert_eq!(response.location().unwrap().port(), Some(5999));
    let code = response.redirect_parameter("code").unwrap();
    let response = server
        .token(&changed(
            &token_request(&client, &code, &verifier),
            "redirect_uri",
            other,
        ))
        .await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
}
