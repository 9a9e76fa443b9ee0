//! Attacks on authorization requests (AU).

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::json;

use crate::support::{Browser, Client, ISSUER, Setup, json_of, location, param, text_of};

pub(crate) const OTHER: &str = "https://mcp.example.com/other";

/// Returns the request of a client with some parameters replaced. An empty value removes one.
pub(crate) fn changed(
    client: &Client,
    changes: &[(&'static str, &str)],
) -> Vec<(&'static str, String)> {
    let mut params = client.request();
    for (name, value) in changes {
        params.retain(|(found, _)| found != name);
        if !value.is_empty() {
            params.push((name, (*value).to_owned()));
        }
    }
    params
}

/// Asserts that the answer is a page that leads nowhere.
fn assert_page(response: &Response<Bytes>, attack: &str) {
    assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{attack}");
    assert!(!response.headers().contains_key("location"), "{attack}");
    let text = text_of(response);
    assert!(text.starts_with("<!doctype html>"), "{attack}: {text}");
    assert!(!text.contains("http-equiv"), "{attack}");
    assert!(!text.contains("href="), "{attack}");
}

/// Returns the error at the client, after checking that `state` and `iss` come with it.
pub(crate) fn error_at_client(response: &Response<Bytes>) -> String {
    let target = location(response);
    assert!(
        target
            .as_str()
            .starts_with("http://127.0.0.1:4321/callback?")
    );
    assert_eq!(param(&target, "state").as_deref(), Some("client-state"));
    assert_eq!(param(&target, "iss").as_deref(), Some(ISSUER));
    assert_eq!(param(&target, "code"), None);
    param(&target, "error").unwrap()
}

/// AU1: a redirect URI that is similar to the registered one is refused.
#[tokio::test]
async fn similar_redirect_uris() {
    let setup = Setup::with(|settings| {
        settings.clients.redirect_hosts = vec!["app.example".into()];
    });
    let client = setup
        .client_with(json!({
            "redirect_uris": [
                "https://app.example/callback", "http://127.0.0.1:4321/callback",
            ],
            "token_endpoint_auth_method": "none",
        }))
        .await;
    let mut browser = Browser::new(&setup);
    for uri in [
        "https://app.example/callback/",
        "https://app.example/Callback",
        "https://APP.example/callback",
        "HTTPS://app.example/callback",
        "https://app.example:443/callback",
        "https://app.example./callback",
        "https://app.example/callback?",
        "https://app.example/callback?a=b",
        "https://app.example/callback#",
        "https://app.example/callback#a",
        "https://app.example/%63allback",
        "https://app.example/x/../callback",
        "https://app.example/callback/../callback",
        "https://app.example//callback",
        "https://app.example\\@attacker.example/callback",
        "https://app.example@attacker.example/callback",
        "https://user:pw@app.example/callback",
        "https://attacker.example/callback",
        "https://sub.app.example/callback",
        "https://app.example/callback\u{0}",
        "https://app.example/callback%00",
        "https://app.example/callback\r\nLocation: https://attacker.example",
        " https://app.example/callback",
        "//app.example/callback",
        "javascript:https://app.example/callback",
        "http://app.example/callback",
        "http://127.0.0.1:4321/callback/",
        "http://127.0.0.1:4321/",
        "http://127.0.0.1:4321/callback?a=b",
        "http://127.0.0.1:4321@attacker.example/callback",
        "http://127.0.0.1:4321.attacker.example/callback",
        "http://localhost:4321/callback",
        "http://[::1]:4321/callback",
        "http://127.0.0.2:4321/callback",
        "http://127.1:4321/callback",
        "http://0x7f000001:4321/callback",
        "http://127.0.0.1.:4321/callback",
        "https://127.0.0.1:4321/callback",
        "http://127.0.0.1:99999/callback",
        "http://127.0.0.1:-1/callback",
    ] {
        let params = changed(&client, &[("redirect_uri", uri)]);
        assert_page(&browser.authorize(&params).await, uri);
    }
    for port in [
        "http://127.0.0.1/callback",
        "http://127.0.0.1:65535/callback",
    ] {
        let params = changed(&client, &[("redirect_uri", port)]);
        let page = browser.authorize(&params).await;
        assert_eq!(page.status(), StatusCode::OK, "{port}");
        let target = continued_denial(&mut browser, &page).await;
        assert!(target.starts_with(port), "{target}");
    }
}

async fn continued_denial(browser: &mut Browser<'_>, page: &Response<Bytes>) -> String {
    let denied = browser.decide(page, "deny").await;
    crate::support::continued(&denied).to_string()
}

/// AU2: nothing is redirected before client and redirect URI are valid, also with other errors.
#[tokio::test]
async fn an_open_redirector() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let foreign = "https://attacker.example/";
    for (name, params) in [
        ("foreign", changed(&client, &[("redirect_uri", foreign)])),
        (
            "unknown client",
            changed(&client, &[("client_id", "other")]),
        ),
        ("no client", changed(&client, &[("client_id", "")])),
        (
            "foreign and an invalid type",
            changed(
                &client,
                &[("redirect_uri", foreign), ("response_type", "token")],
            ),
        ),
        (
            "unknown client with a foreign URI",
            changed(&client, &[("client_id", "x"), ("redirect_uri", foreign)]),
        ),
        (
            "unknown client with a request object",
            changed(&client, &[("client_id", "x"), ("request_uri", foreign)]),
        ),
    ] {
        assert_page(&browser.authorize(&params).await, name);
    }
    let params = changed(&client, &[("response_type", "token")]);
    let error = error_at_client(&browser.authorize(&params).await);
    assert_eq!(error, "unsupported_response_type");
}

/// AU3: PKCE with S256 is required.
#[tokio::test]
async fn pkce_is_removed_or_weakened() {
    let setup = Setup::new();
    let client = setup.client().await;
    let verifier = client.verifier.secret().to_owned();
    let challenge = client.verifier.challenge().as_str().to_owned();
    let mut browser = Browser::new(&setup);
    for changes in [
        vec![("code_challenge", ""), ("code_challenge_method", "")],
        vec![("code_challenge", "")],
        vec![("code_challenge_method", "")],
        vec![
            ("code_challenge_method", "plain"),
            ("code_challenge", &verifier),
        ],
        vec![("code_challenge_method", "s256")],
        vec![("code_challenge_method", "S512")],
        vec![("code_challenge", &challenge[1..])],
        vec![(
            "code_challenge",
            "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        )],
        vec![(
            "code_challenge",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
        )],
    ] {
        let response = browser.authorize(&changed(&client, &changes)).await;
        assert_eq!(error_at_client(&response), "invalid_request", "{changes:?}");
    }
    let doubled = format!("{challenge}{challenge}");
    let params = changed(&client, &[("code_challenge", &doubled)]);
    assert_eq!(
        error_at_client(&browser.authorize(&params).await),
        "invalid_request"
    );
}

/// AU4: only a code is delivered, and only in the query.
#[tokio::test]
async fn other_response_types_and_modes() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for (name, value, expected) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "id_token", "unsupported_response_type"),
        ("response_type", "code token", "unsupported_response_type"),
        (
            "response_type",
            "code id_token",
            "unsupported_response_type",
        ),
        ("response_type", "none", "unsupported_response_type"),
        ("response_type", "CODE", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("response_mode", "fragment", "invalid_request"),
        ("response_mode", "form_post", "invalid_request"),
        ("response_mode", "query.jwt", "invalid_request"),
        ("response_mode", "web_message", "invalid_request"),
    ] {
        let response = browser.authorize(&changed(&client, &[(name, value)])).await;
        assert_eq!(error_at_client(&response), expected, "{name} {value}");
    }
    let params = changed(&client, &[("response_mode", "query")]);
    assert_eq!(browser.authorize(&params).await.status(), StatusCode::OK);
}

/// AU5: repeated parameters are refused, with the same value, too.
#[tokio::test]
async fn repeated_parameters() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let mut all = client.request();
    all.push(("scope", "mcp:tools".to_owned()));
    all.push(("response_mode", "query".to_owned()));
    for (name, value) in &all {
        for second in [value.as_str(), "other"] {
            let mut params = all.clone();
            params.push((name, second.to_owned()));
            let response = browser.authorize(&params).await;
            match *name {
                "client_id" | "redirect_uri" => assert_page(&response, name),
                name => {
                    let error = param(&location(&response), "error").unwrap();
                    let expected = match name {
                        "resource" => "invalid_target",
                        _ => "invalid_request",
                    };
                    assert_eq!(error, expected, "{name}");
                }
            }
        }
    }
    for (name, value) in [
        ("code", "a"),
        ("client_id", "a"),
        ("grant_type", "authorization_code"),
    ] {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client.id.as_str()),
            ("code", "a"),
            ("code_verifier", client.verifier.secret()),
            (name, value),
        ];
        let response = setup.post("/oauth/token", &fields).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{name}");
        assert_eq!(json_of(&response)["error"], "invalid_request", "{name}");
    }
}

/// AU6: request objects are neither read nor fetched.
#[tokio::test]
async fn request_objects() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for (name, value, expected) in [
        ("request", "e30.e30.", "request_not_supported"),
        (
            "request_uri",
            "https://attacker.example/request",
            "request_uri_not_supported",
        ),
        (
            "request_uri",
            "urn:ietf:params:oauth:request_uri:a",
            "request_uri_not_supported",
        ),
    ] {
        let response = browser.authorize(&changed(&client, &[(name, value)])).await;
        assert_eq!(error_at_client(&response), expected);
    }
    assert!(setup.network.urls().is_empty());
    let pushed = setup.post("/oauth/par", &[("client_id", &client.id)]).await;
    assert_eq!(pushed.status(), StatusCode::NOT_FOUND);
}

/// AU2: what is not an endpoint is not found, also with a similar path.
#[tokio::test]
async fn paths_that_are_similar_to_endpoints() {
    let setup = Setup::new();
    for path in [
        "/oauth/",
        "/oauth/authorize/",
        "/oauth/Authorize",
        "/oauth//authorize",
        "/oauth/%61uthorize",
        "/oauth/authorize;a=b",
        "/oauth/../oauth/authorize",
        "/oauth/callback",
        "/oauth/callback/",
        "/oauth/callback/other",
        "/oauth/callback/idp/",
        "/oauth/callback/IDP",
        "/oauth/introspect",
        "/oauth/device_authorization",
        "/oauth/userinfo",
    ] {
        let response = setup.get(path).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let long = format!("/oauth/authorize?state={}", "a".repeat(9000));
    let status = setup.get(&long).await.status();
    assert_eq!(status, StatusCode::URI_TOO_LONG);
}
