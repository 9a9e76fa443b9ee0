//! Two brokers over one store.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_verifier::RevokedTokens as _;
use serde_json::Value;
use tokio::task::yield_now;

use crate::{
    ends::is_ended,
    support::{Browser, Client, Setup, claims, continued, hidden, json_of, location, param},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Revokes a token of the client.
async fn revoke(setup: &Setup, client: &Client, token: &Value) {
    let token = token.as_str().unwrap();
    let fields = [("client_id", client.id.as_str()), ("token", token)];
    let response = setup.post("/oauth/revoke", &fields).await;
    assert_eq!(response.status(), StatusCode::OK, "{response:?}");
}

/// Returns the next refresh token.
async fn next(setup: &Setup, client: &Client, token: &Value) -> Value {
    let response = setup.refresh(client, token.as_str().unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK, "{response:?}");
    json_of(&response)["refresh_token"].clone()
}

/// M9, TK5: an end at one replica is known at the others after they have read the new ends, and is
/// reported there once.
#[tokio::test]
async fn an_end_at_another_replica() {
    let here = Setup::new();
    let there = here.replica();
    for setup in [&here, &there] {
        setup.broker.load_ends().await.unwrap();
    }
    let client = here.client().await;
    let tokens = here.sign_in(&client).await;
    let other = here.sign_in(&client).await;
    revoke(&here, &client, &tokens["refresh_token"]).await;
    assert!(is_ended(&here, &tokens));
    assert!(!is_ended(&there, &tokens));
    for _ in 0..3 {
        there.broker.refresh_ends().await.unwrap();
        here.broker.refresh_ends().await.unwrap();
        here.pass(Duration::from_millis(500));
    }
    assert!(is_ended(&there, &tokens));
    assert!(!is_ended(&there, &other));
    assert_eq!(there.events.count("GrantEndedElsewhere"), 1);
    let claims = claims(&tokens);
    let owner = [&claims["sub"], &claims["sid"], &claims["client_id"]];
    let reported = there.events.all();
    for value in owner.map(|value| value.as_str().unwrap()) {
        assert!(reported.contains(value), "{value}: {reported}");
    }
    assert!(reported.contains("Revoked"), "{reported}");
    assert_eq!(there.events.count("GrantEnded {"), 0);
    assert_eq!(here.events.count("GrantEndedElsewhere"), 0);
}

/// TK5: an access token that was revoked at one replica is rejected at the others. Its grant goes
/// on.
#[tokio::test]
async fn an_access_token_that_was_revoked_at_another_replica() {
    let here = Setup::new();
    let there = here.replica();
    there.broker.load_ends().await.unwrap();
    let client = here.client().await;
    let tokens = here.sign_in(&client).await;
    revoke(&here, &client, &tokens["access_token"]).await;
    let jti = claims(&tokens)["jti"].as_str().unwrap().to_owned();
    assert!(!there.ends.is_revoked(None, Some(&jti)));
    there.broker.refresh_ends().await.unwrap();
    assert!(there.ends.is_revoked(None, Some(&jti)));
    assert!(!is_ended(&there, &tokens));
    assert!(!there.events.contains("GrantEnded"));
    next(&there, &client, &tokens["refresh_token"]).await;
}

/// US1: a user whom the provider ended loses access at all replicas.
#[tokio::test]
async fn a_user_who_ended_at_another_replica() {
    let here = Setup::new();
    let there = here.replica();
    for setup in [&here, &there] {
        setup.broker.load_ends().await.unwrap();
    }
    let client = here.client().await;
    let tokens = here.sign_in(&client).await;
    here.pass(here.settings.lifetimes.recheck);
    here.network.serve(
        here.provider.endpoint("token"),
        400,
        r#"{"error":"invalid_grant"}"#,
    );
    let token = tokens["refresh_token"].as_str().unwrap();
    let response = here.refresh(&client, token).await;
    assert_eq!(json_of(&response)["error"], "invalid_grant");
    there.broker.refresh_ends().await.unwrap();
    assert!(is_ended(&there, &tokens));
    assert!(there.events.all().contains("UserEnded"));
}

/// ST4: a replica that could not read the ends of others for a while finds all of them later, and
/// one that starts finds them as well.
#[tokio::test]
async fn ends_during_an_outage() {
    let here = Setup::new();
    let there = here.replica();
    there.broker.refresh_ends().await.unwrap();
    let client = here.client().await;
    let tokens = here.sign_in(&client).await;
    revoke(&here, &client, &tokens["refresh_token"]).await;
    here.pass(59 * MINUTE);
    assert!(!is_ended(&there, &tokens));
    there.broker.refresh_ends().await.unwrap();
    assert!(is_ended(&there, &tokens));
    let started = here.replica();
    started.broker.refresh_ends().await.unwrap();
    assert!(is_ended(&started, &tokens));
    // Nothing was open at the start that could end now.
    assert!(!started.events.contains("GrantEndedElsewhere"));
}

/// US3: replicas that refresh at once ask the provider once, and one of them waits for the other.
#[tokio::test(start_paused = true)]
async fn refreshes_at_two_replicas_ask_the_provider_once() {
    let here = Arc::new(Setup::new());
    let there = Arc::new(here.replica());
    let client = Arc::new(here.client().await);
    let token = here.sign_in(&client).await["refresh_token"].clone();
    let endpoint = here.provider.endpoint("token");
    here.pass(here.settings.lifetimes.recheck);
    let gates = [&here, &there].map(|setup| setup.network.hang(&endpoint));
    let attempts: Vec<_> = [&here, &there, &there, &here]
        .map(|setup| {
            let (setup, client) = (Arc::clone(setup), Arc::clone(&client));
            let token = token.clone();
            tokio::spawn(async move { next(&setup, &client, &token).await })
        })
        .into();
    for _ in 0..50 {
        yield_now().await;
    }
    let hits = || [&here, &there].map(|setup| setup.network.hits(&endpoint));
    // The sign-in was the first request.
    assert_eq!(hits(), [2, 0]);
    gates.iter().for_each(|gate| gate.release());
    let mut successors = Vec::new();
    for attempt in attempts {
        successors.push(attempt.await.unwrap());
    }
    successors.dedup();
    assert_eq!(successors.len(), 1);
    assert_eq!(hits(), [2, 0]);
    // The other replica checks next time, with the token that the provider rotated.
    here.pass(here.settings.lifetimes.recheck);
    next(&there, &client, &successors[0]).await;
    assert_eq!(hits(), [2, 1]);
}

/// TK2: a code that was exchanged at one replica is not exchanged at another one. The second use
/// ends the grant at both.
#[tokio::test]
async fn a_code_at_two_replicas() {
    let here = Setup::new();
    let there = here.replica();
    for setup in [&here, &there] {
        setup.broker.load_ends().await.unwrap();
    }
    let client = here.client().await;
    let mut browser = Browser::new(&here);
    let code = param(&browser.sign_in(&client).await, "code").unwrap();
    let tokens = json_of(&there.exchange(&client, &code).await);
    assert!(tokens["access_token"].is_string(), "{tokens}");
    let response = here.exchange(&client, &code).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_of(&response)["error"], "invalid_grant");
    there.broker.refresh_ends().await.unwrap();
    for setup in [&here, &there] {
        assert!(is_ended(setup, &tokens));
    }
    assert!(there.events.contains("CodeReplayed"));
}

/// RF2: a refresh token gets the same successor at each replica, and never a second branch.
#[tokio::test]
async fn repetitions_at_two_replicas() {
    let here = Setup::new();
    let there = here.replica();
    let client = here.client().await;
    let first = here.sign_in(&client).await["refresh_token"].clone();
    let second = next(&here, &client, &first).await;
    assert_eq!(next(&there, &client, &first).await, second);
    let third = next(&there, &client, &second).await;
    assert_eq!(next(&here, &client, &second).await, third);
    assert_eq!(next(&here, &client, &first).await, second);
    next(&here, &client, &third).await;
}

/// RG4: a client that registered at one replica is known at the others, and is the same client if
/// it registers there again.
#[tokio::test]
async fn a_registration_at_another_replica() {
    let here = Setup::new();
    let there = here.replica();
    let client = here.client().await;
    assert_eq!(there.client().await.id, client.id);
    let tokens = there.sign_in(&client).await;
    assert_eq!(claims(&tokens)["client_id"], client.id);
    next(&here, &client, &tokens["refresh_token"]).await;
}

/// CO2: a sign-in continues at any replica, and its transaction once over all of them.
#[tokio::test]
async fn a_sign_in_over_two_replicas() {
    let here = Setup::new();
    let there = here.replica();
    let client = here.client().await;
    let mut at_first = Browser::new(&here);
    let page = at_first.authorize(&client.request()).await;

    let mut at_second = Browser::new(&there);
    at_second.cookies.clone_from(&at_first.cookies);
    let sealed = hidden(&page, "request");
    let fields = [("request", sealed.as_str()), ("decision", "allow:idp")];
    let url = continued(&at_second.post("/oauth/consent", &fields).await);
    at_first.remember_nonce(&url);
    at_first.cookies.clone_from(&at_second.cookies);

    let response = at_first.return_from(&url).await;
    let code = param(&location(&response), "code").unwrap();
    let tokens = json_of(&there.exchange(&client, &code).await);
    next(&here, &client, &tokens["refresh_token"]).await;
    let repeated = at_second.return_from(&url).await;
    assert_eq!(repeated.status(), StatusCode::BAD_REQUEST, "{repeated:?}");
}
