//! Errors of the authorization endpoint: which are displayed, and which are sent to the client.

use http::StatusCode;
use serde_json::json;

use crate::support::*;

/// Asserts that the error is displayed on a page and not sent to the redirect URI.
fn assert_displayed(response: &Response, reason: &str) {
    assert_eq!(
        response.status,
        StatusCode::BAD_REQUEST,
        "{}",
        response.body
    );
    assert!(response.location().is_none());
    assert!(response.body.contains(reason), "{}", response.body);
    assert!(response.body.contains("For development"));
}

/// No error is sent to an untrusted redirect URI.
#[tokio::test]
async fn nothing_is_sent_to_an_untrusted_redirect_uri() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let good = authorization_request(&client, verifier.challenge());
    let twice =
        |name: &'static str, value: &'static str| [good.clone(), vec![(name, value)]].concat();
    assert!(
        server
            .authorize(&good)
            .await
            .redirect_parameter("code")
            .is_some()
    );

    for (parameters, reason) in [
        (changed(&good, "client_id", None), "client_id is missing"),
        (changed(&good, "client_id", ""), "client_id is missing"),
        (changed(&good, "client_id", "unknown"), "not registered"),
        (twice("client_id", "unknown"), "several clients"),
        (
            twice("redirect_uri", "https://evil.example/"),
            "several redirect URIs",
        ),
        (
            changed(&good, "redirect_uri", "https://evil.example/"),
            "not one that the client registered",
        ),
        (
            changed(&good, "redirect_uri", "http://localhost:4321/callback"),
            "not one that the client registered",
        ),
        (
            changed(&good, "redirect_uri", "http://127.0.0.1:4321/callback/"),
            "not one that the client registered",
        ),
        (
            changed(&good, "redirect_uri", "http://127.0.0.1:4321/callback?x=1"),
            "not one that the client registered",
        ),
        (
            changed(
                &good,
                "redirect_uri",
                "http://127.0.0.1@evil.example/callback",
            ),
            "not one that the client registered",
        ),
        (
            changed(&good, "redirect_uri", "javascript:alert(1)"),
            "not one that the client registered",
        ),
    ] {
        assert_displayed(&server.authorize(&parameters).await, reason);
    }
}

/// Errors are sent to a trusted redirect URI with `state` and `iss`.
#[tokio::test]
async fn other_errors_are_sent_to_the_client() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let challenge = verifier.challenge();
    let good = authorization_request(&client, challenge);
    let with =
        |name: &'static str, value: &'static str| [good.clone(), vec![(name, value)]].concat();
    assert!(
        server
            .authorize(&good)
            .await
            .redirect_parameter("code")
            .is_some()
    );

    for (parameters, error) in [
        (changed(&good, "response_type", None), "invalid_request"),
        (
            changed(&good, "response_type", "token"),
            "unsupported_response_type",
        ),
        (with("response_mode", "fragment"), "invalid_request"),
        (with("request", "eyJ"), "request_not_supported"),
        (
            with("request_uri", "https://client.example/r"),
            "request_uri_not_supported",
        ),
        (changed(&good, "code_challenge", None), "invalid_request"),
        (changed(&good, "code_challenge", "short"), "invalid_request"),
        (
            changed(&good, "code_challenge_method", None),
            "invalid_request",
        ),
        (
            changed(&good, "code_challenge_method", "plain"),
            "invalid_request",
        ),
        (
            changed(&good, "code_challenge_method", "s256"),
            "invalid_request",
        ),
        (with("code_challenge_method", "plain"), "invalid_request"),
        (with("response_type", "code"), "invalid_request"),
        (with("scope", "mcp:tools"), "invalid_request"),
        (changed(&good, "scope", "nothing known"), "invalid_scope"),
        (changed(&good, "scope", "mcp:tools \""), "invalid_scope"),
        (changed(&good, "resource", None), "invalid_target"),
        (changed(&good, "resource", "mcp"), "invalid_target"),
        (
            changed(&good, "resource", "urn:example:api"),
            "invalid_target",
        ),
        (
            changed(&good, "resource", "http://127.0.0.1:3000/mcp#part"),
            "invalid_target",
        ),
        (
            with("resource", "https://other.example/mcp"),
            "invalid_target",
        ),
    ] {
        let response = server.authorize(&parameters).await;
        assert_eq!(response.status, StatusCode::FOUND, "{parameters:?}");
        assert!(
            response
                .location()
                .unwrap()
                .as_str()
                .starts_with(&format!("{REDIRECT}?"))
        );
        assert_eq!(
            response.redirect_parameter("error").as_deref(),
            Some(error),
            "{parameters:?}"
        );
        assert_eq!(
            response.redirect_parameter("state").as_deref(),
            Some("a state & more")
        );
        assert_eq!(
            response.redirect_parameter("iss").as_deref(),
            Some(&*server.issuer)
        );
        assert_eq!(response.redirect_parameter("code"), None);
    }
    let response = server.authorize(&with("state", "another")).await;
    assert_eq!(
        response.redirect_parameter("error").as_deref(),
        Some("invalid_request")
    );
    assert_eq!(response.redirect_parameter("state"), None);
}

#[tokio::test]
async fn unknown_scopes_are_dropped() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.scopes = portcullis_metadata::Scopes::parse("mcp:tools mcp:admin").unwrap();
    })
    .await;
    let client = server.register().await;
    for (requested, granted) in [
        (Some("mcp:tools"), "mcp:tools"),
        (Some("mcp:other mcp:admin offline_access"), "mcp:admin"),
        (Some("openid mcp:other"), "openid"),
        (None, "mcp:admin mcp:tools"),
    ] {
        let verifier = verifier();
        let challenge = verifier.challenge();
        let parameters = changed(
            &authorization_request(&client, challenge),
            "scope",
            requested,
        );
        let code = server
            .authorize(&parameters)
            .await
            .redirect_parameter("code")
            .unwrap();
        let body = server
            .token(&token_request(&client, &code, &verifier))
            .await
            .json();
        assert_eq!(body["scope"], granted);
    }
}

#[tokio::test]
async fn the_default_resource_is_used() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.default_resource =
            Some(portcullis_metadata::ResourceUri::parse(RESOURCE).unwrap());
    })
    .await;
    let client = server.register().await;
    let verifier = verifier();
    let parameters = changed(
        &authorization_request(&client, verifier.challenge()),
        "resource",
        None,
    );
    let code = server
        .authorize(&parameters)
        .await
        .redirect_parameter("code")
        .unwrap();
    let response = server
        .token(&changed(
            &token_request(&client, &code, &verifier),
            "resource",
            None,
        ))
        .await;
    assert_eq!(claims(&response.text("access_token"))["aud"], RESOURCE);
}

#[tokio::test]
async fn the_only_redirect_uri_is_optional() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let challenge = verifier.challenge();
    let parameters = changed(
        &authorization_request(&client, challenge),
        "redirect_uri",
        None,
    );
    let response = server.authorize(&parameters).await;
    assert!(
        response
            .location()
            .unwrap()
            .as_str()
            .starts_with(&format!("{REDIRECT}?"))
    );

    let body = json!({ "redirect_uris": [REDIRECT, "https://client.example/cb"] });
    let two = server.register_with(&body).await.json();
    let parameters = changed(&parameters, "client_id", two["client_id"].as_str().unwrap());
    assert_displayed(
        &server.authorize(&parameters).await,
        "redirect_uri is missing",
    );
}

#[tokio::test]
async fn a_long_query_is_rejected() {
    let server = Server::with_auto_consent().await;
    let response = server
        .get(&format!("/authorize?{}", "a".repeat(9000)))
        .await;
    assert_eq!(response.status, StatusCode::URI_TOO_LONG);
}
