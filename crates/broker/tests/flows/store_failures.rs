//! Failures of the store (ST4).

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_metadata::Clock as _;
use portcullis_state_store::records::{Change, StoredRecord, Table, Write};
use portcullis_verifier::RevokedTokens as _;
use serde_json::json;

use crate::{
    ends::is_ended,
    failing_records::{Failures, Fixture, assert_unavailable, fixture},
    support::{
        Browser, PROVIDER_CLIENT, Setup, claims, continued, json_of, location, param, token_of,
    },
};

/// ST4: with a store that fails, or is full, nothing is issued at any step, and everything works
/// again when the store does.
#[tokio::test]
async fn a_store_that_fails_at_each_step() {
    for failure in ["reads", "writes", "full"] {
        let Fixture {
            setup, failures, ..
        } = fixture();
        let failing = match failure {
            "reads" => &failures.reads,
            "writes" => &failures.writes,
            _ => &failures.is_full,
        };
        let client = setup.client().await;
        let mut browser = Browser::new(&setup);
        let page = browser.authorize(&client.request()).await;

        Failures::set(failing, true);
        let metadata = json!({
            "redirect_uris": ["http://127.0.0.1/a"], "token_endpoint_auth_method": "none",
        });
        assert_unavailable(&setup.register(metadata).await, "registration");
        let asked = browser.authorize(&client.request()).await;
        if failure == "reads" {
            assert_eq!(asked.status(), StatusCode::SERVICE_UNAVAILABLE);
        } else {
            let approved = browser.decide(&page, "allow:idp").await;
            let target = continued(&approved);
            assert!(
                target.as_str().starts_with(&client.redirect_uri),
                "{target}"
            );
            let error = param(&target, "error");
            assert_eq!(error.as_deref(), Some("temporarily_unavailable"));
            assert!(!approved.headers().contains_key("set-cookie"));
        }
        Failures::set(failing, false);

        let url = browser.approve(&page).await;
        Failures::set(failing, true);
        let response = browser.return_from(&url).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 0);
        Failures::set(failing, false);
        let code = param(&location(&browser.return_from(&url).await), "code").unwrap();

        Failures::set(failing, true);
        assert_unavailable(&setup.exchange(&client, &code).await, "exchange");
        Failures::set(failing, false);
        let response = setup.exchange(&client, &code).await;
        assert_eq!(response.status(), StatusCode::OK, "{failure}");
        let token = json_of(&response)["refresh_token"]
            .as_str()
            .unwrap()
            .to_owned();

        for _ in 0..2 {
            Failures::set(failing, true);
            assert_unavailable(&setup.refresh(&client, &token).await, "refresh");
            Failures::set(failing, false);
            setup.pass(setup.settings.lifetimes.recheck);
        }
        assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 1);
        let response = setup.refresh(&client, &token).await;
        assert_eq!(response.status(), StatusCode::OK);

        Failures::set(failing, true);
        let token = json_of(&response)["refresh_token"]
            .as_str()
            .unwrap()
            .to_owned();
        let fields = [("client_id", client.id.as_str()), ("token", &token)];
        assert_unavailable(&setup.post("/oauth/revoke", &fields).await, "revocation");
    }
}

/// ST4: a code is not issued if it cannot be stored, although the user signed in.
#[tokio::test]
async fn a_store_that_fails_during_the_sign_in() {
    let Fixture {
        setup, failures, ..
    } = fixture();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    let failing = Arc::clone(&failures);
    *setup.provider.sign.lock() = Box::new(move |token| {
        Failures::set(&failing.writes, true);
        token.sign()
    });
    let target = location(&browser.return_from(&url).await);
    assert_eq!(param(&target, "code"), None);
    assert_eq!(
        param(&target, "error").as_deref(),
        Some("temporarily_unavailable")
    );
    assert!(!setup.events.contains("SignedIn"));
    assert!(
        setup
            .events
            .contains("ProviderFailed { provider: \"idp\", code: \"store.failed\" }")
    );
}

/// ST4, US5: a logout that could not be stored can be sent again, and assertions of clients leave
/// logouts their space.
#[tokio::test]
async fn a_store_that_fails_during_a_logout() {
    let Fixture {
        setup, failures, ..
    } = fixture();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let mut change = Change::default();
    for number in 0..10_000_u32 {
        let expires = setup.clock.now().saturating_add(Duration::from_secs(3600));
        change.writes.push(Write::Put {
            table: Table("broker_assertions"),
            key: number.to_be_bytes().into(),
            record: StoredRecord {
                value: Vec::new().into(),
                expires,
            },
        });
    }
    setup.records.commit(change).await.unwrap();
    let event = json!({ "http://schemas.openid.net/event/backchannel-logout": {} });
    let token = setup.provider.issuer.token().typ("logout+jwt");
    let token = token
        .audience(PROVIDER_CLIENT)
        .claim("events", event)
        .sign();
    let fields = [("logout_token", token.as_str())];
    Failures::set(&failures.writes, true);
    let response = setup.post("/oauth/logout/idp", &fields).await;
    assert_unavailable(&response, "logout");
    Failures::set(&failures.writes, false);
    let response = setup.post("/oauth/logout/idp", &fields).await;
    assert_eq!(response.status(), StatusCode::OK);
    let restarted = setup.restarted(|_| ());
    let response = restarted.refresh(&client, &token_of(&tokens)).await;
    assert_eq!(json_of(&response)["error"], "invalid_grant");
    let response = setup.post("/oauth/logout/idp", &fields).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

/// ST4: if the end of a grant cannot be stored, its tokens are rejected in this process, and the
/// observer is told, so that streams and sessions end. The end can be repeated.
#[tokio::test]
async fn an_end_that_cannot_be_stored() {
    for is_full in [false, true] {
        let Fixture {
            setup, failures, ..
        } = fixture();
        let failing = match is_full {
            true => &failures.is_full,
            false => &failures.writes,
        };
        let client = setup.client().await;
        let tokens = setup.sign_in(&client).await;
        let token = token_of(&tokens);
        let fields = [("client_id", client.id.as_str()), ("token", &token)];
        Failures::set(failing, true);
        assert_unavailable(&setup.post("/oauth/revoke", &fields).await, "revocation");
        assert!(is_ended(&setup, &tokens));
        assert_eq!(setup.events.count("EndNotStored"), 1);
        assert!(setup.events.contains(&client.id), "the owner is known");
        assert!(!setup.events.contains("GrantEnded"));

        Failures::set(failing, false);
        let response = setup.post("/oauth/revoke", &fields).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(setup.events.count("GrantEnded"), 1);
        assert_eq!(setup.events.count("EndNotStored"), 1);
    }
}

/// ST4: if the revocation of an access token cannot be stored, the token is rejected in this
/// process, and the other tokens of its grant are not. The revocation can be repeated.
#[tokio::test]
async fn a_revocation_that_cannot_be_stored() {
    for failing in ["writes", "full"] {
        let Fixture {
            setup, failures, ..
        } = fixture();
        let failing = match failing {
            "writes" => &failures.writes,
            _ => &failures.is_full,
        };
        let client = setup.client().await;
        let tokens = setup.sign_in(&client).await;
        let is_revoked = |setup: &Setup| {
            let claims = claims(&tokens);
            setup.ends.is_revoked(None, claims["jti"].as_str())
        };
        let token = tokens["access_token"].as_str().unwrap();
        let fields = [("client_id", client.id.as_str()), ("token", token)];
        Failures::set(failing, true);
        assert_unavailable(&setup.post("/oauth/revoke", &fields).await, "revocation");
        assert!(is_revoked(&setup));
        assert!(!is_ended(&setup, &tokens));

        Failures::set(failing, false);
        let response = setup.post("/oauth/revoke", &fields).await;
        assert_eq!(response.status(), StatusCode::OK);
        let restarted = setup.restarted(|_| ());
        restarted.broker.load_ends().await.unwrap();
        assert!(is_revoked(&restarted), "it is stored");
        let response = restarted.refresh(&client, &token_of(&tokens)).await;
        assert_eq!(response.status(), StatusCode::OK);
    }
}
