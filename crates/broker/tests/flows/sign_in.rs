//! The way of a user who is not attacked.

use std::time::Duration;

use http::StatusCode;

use crate::support::{Browser, ISSUER, RESOURCE, Setup, claims, json_of, param};

/// A user approves a client, signs in, and the client gets tokens that it can refresh.
#[tokio::test]
async fn a_user_signs_in() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let location = browser.sign_in(&client).await;
    assert!(
        location
            .as_str()
            .starts_with("http://127.0.0.1:4321/callback?")
    );
    assert_eq!(param(&location, "state").as_deref(), Some("client-state"));
    assert_eq!(param(&location, "iss").as_deref(), Some(ISSUER));
    let transaction = |(name, value): (&String, &String)| {
        assert!(!name.contains("transaction") || value.is_empty(), "{name}");
    };
    browser.cookies.iter().for_each(transaction);

    let code = param(&location, "code").unwrap();
    let response = setup.exchange(&client, &code).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["cache-control"], "no-store");
    let tokens = json_of(&response);
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["expires_in"], 3600);
    assert_eq!(tokens["scope"], "mcp:tools");
    let claims = claims(&tokens);
    assert_eq!(claims["iss"], ISSUER);
    assert_eq!(claims["aud"], RESOURCE);
    assert_eq!(claims["client_id"], client.id);
    assert!(claims["sub"].as_str().unwrap().starts_with("idp_"));
    assert!(!claims["sub"].as_str().unwrap().contains("alice"));

    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(response.status(), StatusCode::OK);
    let refreshed = json_of(&response);
    assert_eq!(crate::support::claims(&refreshed)["sid"], claims["sid"]);
    assert_ne!(refreshed["refresh_token"], tokens["refresh_token"]);
    assert!(setup.events.contains("SignedIn"));
}

/// US1: the user is checked at the provider at a refresh, if the last check is older than
/// `recheck`.
#[tokio::test]
async fn the_user_is_checked_again() {
    let setup = Setup::new();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let token_endpoint = setup.provider.endpoint("token");
    assert_eq!(setup.network.hits(&token_endpoint), 1);
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    setup.pass(Duration::from_secs(49 * 60));
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(setup.network.hits(&token_endpoint), 1);
    let next = json_of(&response)["refresh_token"]
        .as_str()
        .unwrap()
        .to_owned();
    setup.pass(Duration::from_secs(60));
    let response = setup.refresh(&client, &next).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(setup.network.hits(&token_endpoint), 2);
}
