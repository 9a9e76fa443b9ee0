//! Attacks on codes (TK).

use std::{net::IpAddr, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use portcullis_metadata::authorization::PkceVerifier;
use serde_json::json;

use crate::{
    access_tokens::{OTHER, introspected, is_active},
    support::{
        Browser, Client, ISSUER, Setup, encode, error_of, form_request, json_of, location, param,
        request, resource,
    },
};

async fn code_of(setup: &Setup, client: &Client) -> String {
    param(&Browser::new(setup).sign_in(client).await, "code").unwrap()
}

/// Sends a form to the token endpoint. Changes replace fields; an empty value removes one.
async fn exchange(
    setup: &Setup,
    client: &Client,
    code: &str,
    changes: &[(&str, &str)],
) -> Response<Bytes> {
    let mut fields = vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", client.redirect_uri.as_str()),
        ("client_id", client.id.as_str()),
        ("code_verifier", client.verifier.secret()),
    ];
    for (name, value) in changes {
        fields.retain(|(found, _)| found != name);
        fields.push((name, value));
    }
    fields.retain(|(_, value)| !value.is_empty());
    setup.post("/oauth/token", &fields).await
}

/// TK1: a code is useless with another verifier, client, redirect URI or resource, and stays usable
/// for its owner.
#[tokio::test]
async fn a_stolen_code() {
    let setup = Setup::with(|settings| settings.resources.push(resource(OTHER)));
    let client = setup.client().await;
    let attacker = setup
        .client_with(json!({
            "redirect_uris": ["http://127.0.0.1:4321/callback"], "client_name": "attacker",
            "token_endpoint_auth_method": "none",
        }))
        .await;
    let code = code_of(&setup, &client).await;
    let other = PkceVerifier::generate().unwrap();
    let challenge = client.verifier.challenge().as_str().to_owned();
    for (name, value, expected) in [
        ("code_verifier", other.secret(), "invalid_grant"),
        ("code_verifier", challenge.as_str(), "invalid_grant"),
        ("code_verifier", "short", "invalid_grant"),
        ("code_verifier", "", "invalid_request"),
        ("client_id", attacker.id.as_str(), "invalid_grant"),
        ("redirect_uri", "http://127.0.0.1/callback", "invalid_grant"),
        (
            "redirect_uri",
            "http://127.0.0.1:4321/callback/",
            "invalid_grant",
        ),
        ("redirect_uri", "https://attacker.example/", "invalid_grant"),
        ("resource", OTHER, "invalid_target"),
        ("resource", "https://attacker.example/", "invalid_target"),
        ("code", "unknown", "invalid_grant"),
        ("code", "", "invalid_request"),
        ("grant_type", "", "invalid_request"),
    ] {
        let response = exchange(&setup, &client, &code, &[(name, value)]).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{name} {value}");
        assert_eq!(error_of(&response), expected, "{name} {value}");
    }
    let own = [
        ("client_id", attacker.id.as_str()),
        ("code_verifier", attacker.verifier.secret()),
    ];
    let response = exchange(&setup, &client, &code, &own).await;
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(!setup.events.contains("GrantEnded"));
    let response = exchange(&setup, &client, &code, &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
}

/// TK1, OR6: a code that was injected into the sign-in of an honest client does not match its
/// verifier.
#[tokio::test]
async fn an_injected_code() {
    let setup = Setup::new();
    let victim = setup.client().await;
    // The attacker has the same client on its own machine.
    let attacker = setup.client().await;
    assert_eq!(victim.id, attacker.id);
    let code = code_of(&setup, &attacker).await;
    let response = setup.exchange(&victim, &code).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// TK1: a code lives for a minute.
#[tokio::test]
async fn an_old_code() {
    let setup = Setup::new();
    let client = setup.client().await;
    let code = code_of(&setup, &client).await;
    setup.pass(Duration::from_secs(60));
    let response = setup.exchange(&client, &code).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// TK2: the second use of a code ends the grant and its access tokens.
#[tokio::test]
async fn a_code_that_is_used_twice() {
    let setup = Setup::with(introspected);
    let client = setup.client().await;
    let code = code_of(&setup, &client).await;
    let tokens = json_of(&setup.exchange(&client, &code).await);
    let access_token = tokens["access_token"].as_str().unwrap();
    assert!(is_active(&setup, access_token).await);
    // A second use that fails a check ends nothing.
    let other = PkceVerifier::generate().unwrap();
    let wrong = [("code_verifier", other.secret())];
    exchange(&setup, &client, &code, &wrong).await;
    assert!(is_active(&setup, access_token).await);

    setup.pass(Duration::from_secs(500));
    let response = setup.exchange(&client, &code).await;
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(!is_active(&setup, access_token).await);
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(setup.events.contains("CodeReplayed"));
    // The end is known after a restart.
    let restarted = setup.restarted(|_| ());
    restarted.broker.load_ends().await.unwrap();
    assert!(!is_active(&restarted, access_token).await);
}

/// TK2: of several exchanges at once, one gets tokens, and these end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_code_that_is_used_at_once() {
    let setup = Arc::new(Setup::with(introspected));
    let client = Arc::new(setup.client().await);
    let code = code_of(&setup, &client).await;
    let attempts: Vec<_> = (0..8)
        .map(|_| {
            let (setup, client, code) = (Arc::clone(&setup), Arc::clone(&client), code.clone());
            tokio::spawn(async move { setup.exchange(&client, &code).await })
        })
        .collect();
    let mut responses = Vec::new();
    for attempt in attempts {
        responses.push(attempt.await.unwrap());
    }
    let mut issued = responses
        .into_iter()
        .filter(|response| response.status() == StatusCode::OK);
    let first = issued.next();
    assert!(issued.next().is_none());
    if let Some(tokens) = first {
        let token = json_of(&tokens)["access_token"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(!is_active(&setup, &token).await);
    }
}

/// TK3: a client that has a secret must use it, with its method.
#[tokio::test]
async fn a_confidential_client_without_its_secret() {
    let setup = Setup::with(|settings| {
        settings.clients.redirect_hosts = vec!["app.example".into()];
    });
    let metadata = json!({
        "redirect_uris": ["https://app.example/callback"],
        "token_endpoint_auth_method": "client_secret_basic",
    });
    let registered = json_of(&setup.register(metadata).await);
    let secret = registered["client_secret"].as_str().unwrap();
    let client = Client {
        id: registered["client_id"].as_str().unwrap().to_owned(),
        redirect_uri: "https://app.example/callback".into(),
        verifier: PkceVerifier::generate().unwrap(),
    };
    let code = code_of(&setup, &client).await;
    for changes in [
        vec![],
        vec![("client_secret", secret)],
        vec![("client_secret", "wrong")],
    ] {
        let response = exchange(&setup, &client, &code, &changes).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(error_of(&response), "invalid_client");
    }
    for (credential, expected) in [
        (format!("{}:wrong", client.id), StatusCode::UNAUTHORIZED),
        (format!("{}:", client.id), StatusCode::UNAUTHORIZED),
        (format!("other:{secret}"), StatusCode::UNAUTHORIZED),
        (format!("{}:{secret}", client.id), StatusCode::OK),
    ] {
        let mut headers = HeaderMap::new();
        let value = format!("Basic {}", STANDARD.encode(&credential));
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("code_verifier", client.verifier.secret()),
        ];
        let response = setup
            .send(form_request("/oauth/token", headers, &fields))
            .await;
        assert_eq!(response.status(), expected, "{credential}");
    }
}

/// TK6: codes and tokens cannot be guessed, and attempts of one address are limited.
#[tokio::test]
async fn guessed_codes() {
    let setup = Setup::new();
    let client = setup.client().await;
    let code = code_of(&setup, &client).await;
    assert!(code.len() >= 43);
    assert_ne!(code, code_of(&setup, &client).await);
    let address = IpAddr::from([203, 0, 113, 1]);
    let guess = async || {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", "guess"),
            ("client_id", client.id.as_str()),
            ("code_verifier", client.verifier.secret()),
        ];
        let request = form_request("/oauth/token", HeaderMap::new(), &fields);
        setup.broker.handle(request, address).await
    };
    for _ in 0..1200 {
        assert_eq!(guess().await.status(), StatusCode::BAD_REQUEST);
    }
    let response = guess().await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(response.headers().contains_key("retry-after"));
    let page = async || {
        let path = format!("/oauth/authorize?{}", encode(&client.request()));
        let request = request(Method::GET, &path, HeaderMap::new(), Bytes::new());
        setup.broker.handle(request, address).await.status()
    };
    for _ in 0..120 {
        assert_eq!(page().await, StatusCode::OK);
    }
    assert_eq!(page().await, StatusCode::TOO_MANY_REQUESTS);
}

/// TK9: neither passwords nor device codes are offered.
#[tokio::test]
async fn grants_that_are_not_offered() {
    let setup = Setup::new();
    let metadata = json_of(&setup.get("/.well-known/oauth-authorization-server").await);
    assert_eq!(
        metadata["grant_types_supported"],
        json!(["authorization_code", "refresh_token"])
    );
    assert!(metadata.get("device_authorization_endpoint").is_none());
    assert_eq!(metadata["issuer"], ISSUER);
    let response = setup.post("/oauth/device_authorization", &[]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

/// TK1: the token endpoint reads only forms.
#[tokio::test]
async fn a_code_in_another_content_type() {
    let setup = Setup::new();
    let client = setup.client().await;
    let code = code_of(&setup, &client).await;
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("client_id", client.id.as_str()),
        ("code_verifier", client.verifier.secret()),
    ];
    for content_type in ["text/plain", "application/json", "multipart/form-data"] {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        let body = encode(&fields).into();
        let response = setup
            .send(request(Method::POST, "/oauth/token", headers, body))
            .await;
        assert_eq!(error_of(&response), "invalid_request", "{content_type}");
    }
    let path = format!("/oauth/token?{}", encode(&fields));
    let response = setup.post(&path, &[]).await;
    assert!(response.status().is_client_error());
    let page = setup.get(&path).await;
    assert_eq!(page.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(
        setup.exchange(&client, &code).await.status(),
        StatusCode::OK
    );
}

/// AU8: the code carries the scopes that the user saw, and the exchange cannot add to them.
#[tokio::test]
async fn scopes_at_the_exchange() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
    let scope = [("scope", "mcp:tools mcp:admin")];
    let response = exchange(&setup, &client, &code, &scope).await;
    assert_eq!(json_of(&response)["scope"], "mcp:tools");
}
