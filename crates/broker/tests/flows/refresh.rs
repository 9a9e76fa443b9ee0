//! Attacks on refresh tokens (RF).

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_broker::ScopeGrant;
use portcullis_guard::authorize::{ClaimRule, ClaimTest};
use portcullis_metadata::Scopes;
use serde_json::json;

use crate::{
    ends::is_ended,
    support::{
        Browser, Client, RESOURCE, Setup, claims, error_of, json_of, location, param, resource,
        token_of,
    },
};

const OTHER: &str = "https://mcp.example.com/other";
const MINUTE: Duration = Duration::from_secs(60);

async fn refresh_with(
    setup: &Setup,
    client: &Client,
    token: &str,
    extra: &[(&str, &str)],
) -> Response<Bytes> {
    let mut fields = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", client.id.as_str()),
    ];
    fields.extend(extra);
    setup.post("/oauth/token", &fields).await
}

/// Returns the next refresh token.
async fn next(setup: &Setup, client: &Client, token: &str) -> String {
    let response = setup.refresh(client, token).await;
    assert_eq!(response.status(), StatusCode::OK, "{response:?}");
    token_of(&json_of(&response))
}

/// RF1: a used token that is presented after the time for repetitions ends its family.
#[tokio::test]
async fn a_stolen_token_after_its_owner_used_it() {
    let setup = Setup::new();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let stolen = token_of(&tokens);
    let current = next(&setup, &client, &stolen).await;
    setup.pass(10 * MINUTE);
    let response = setup.refresh(&client, &stolen).await;
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(is_ended(&setup, &tokens));
    assert!(setup.events.contains("RefreshTokenReplayed"));
    let response = setup.refresh(&client, &current).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// RF1: a replay ends the family for every presenter, and while the provider is down.
#[tokio::test]
async fn a_replay_by_another_client_during_an_outage() {
    for is_foreign in [false, true] {
        let setup = Setup::new();
        let client = setup.client().await;
        let other = setup.other_client().await;
        let tokens = setup.sign_in(&client).await;
        let stolen = token_of(&tokens);
        next(&setup, &client, &stolen).await;
        setup.network.fail(setup.provider.endpoint("token"));
        setup.pass(setup.settings.lifetimes.max_unchecked);
        let presenter = if is_foreign { &other } else { &client };
        let hits = setup.network.hits(setup.provider.endpoint("token"));
        let response = setup.refresh(presenter, &stolen).await;
        assert_eq!(error_of(&response), "invalid_grant");
        assert!(is_ended(&setup, &tokens));
        assert_eq!(setup.network.hits(setup.provider.endpoint("token")), hits);
    }
}

/// RF1: with `refresh_reuse = 0`, each token works once.
#[tokio::test]
async fn a_second_use_with_strict_single_use() {
    let setup = Setup::with(|settings| settings.lifetimes.refresh_reuse = Duration::ZERO);
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let first = token_of(&tokens);
    next(&setup, &client, &first).await;
    let response = setup.refresh(&client, &first).await;
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(is_ended(&setup, &tokens));
}

/// RF2: several processes of a user get the same successor, and never a second branch.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_refresh_at_once() {
    let setup = Arc::new(Setup::new());
    let client = Arc::new(setup.client().await);
    let mut current = token_of(&setup.sign_in(&client).await);
    for _ in 0..3 {
        let attempts: Vec<_> = (0..8)
            .map(|_| {
                let (setup, client) = (Arc::clone(&setup), Arc::clone(&client));
                let token = current.clone();
                tokio::spawn(async move { next(&setup, &client, &token).await })
            })
            .collect();
        let mut successors = Vec::new();
        for attempt in attempts {
            successors.push(attempt.await.unwrap());
        }
        successors.dedup();
        assert_eq!(successors.len(), 1);
        current = successors.remove(0);
    }
    assert!(!setup.events.contains("GrantEnded"));
}

/// RF2: the time for repetitions begins with the first use, and repetitions do not extend it.
#[tokio::test]
async fn repetitions_that_never_end() {
    let setup = Setup::new();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let first = token_of(&tokens);
    let second = next(&setup, &client, &first).await;
    for _ in 0..9 {
        setup.pass(MINUTE);
        assert_eq!(next(&setup, &client, &first).await, second);
    }
    let third = next(&setup, &client, &second).await;
    assert_eq!(next(&setup, &client, &first).await, second);
    assert_eq!(next(&setup, &client, &second).await, third);
    setup.pass(MINUTE);
    let response = setup.refresh(&client, &first).await;
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(is_ended(&setup, &tokens));
}

/// RF3: a client whose response was lost gets the same tokens, also after a restart.
#[tokio::test]
async fn a_lost_response() {
    let setup = Setup::new();
    let client = setup.client().await;
    let first = token_of(&setup.sign_in(&client).await);
    let second = next(&setup, &client, &first).await;
    let restarted = setup.restarted(|_| ());
    assert_eq!(next(&restarted, &client, &first).await, second);
}

/// RF4: another client, a wider scope and a foreign resource are refused, and rotate nothing.
#[tokio::test]
async fn a_refresh_for_more() {
    let setup = Setup::with(|settings| settings.resources.push(resource(OTHER)));
    let client = setup.client().await;
    let attacker = setup.other_client().await;
    let tokens = setup.sign_in(&client).await;
    let token = token_of(&tokens);
    let response = setup.refresh(&attacker, &token).await;
    assert_eq!(error_of(&response), "invalid_grant");
    for (name, value, expected) in [
        ("scope", "mcp:tools mcp:admin", "invalid_scope"),
        ("scope", "mcp:admin", "invalid_scope"),
        ("scope", "mcp:root", "invalid_scope"),
        ("scope", "\"", "invalid_scope"),
        ("resource", OTHER, "invalid_target"),
        ("resource", "https://attacker.example/", "invalid_target"),
        ("resource", "mcp", "invalid_target"),
        ("refresh_token", "second", "invalid_request"),
    ] {
        let response = refresh_with(&setup, &client, &token, &[(name, value)]).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{name} {value}");
        assert_eq!(error_of(&response), expected, "{name} {value}");
    }
    setup.pass(11 * MINUTE);
    // The token was not used by any of them.
    let extra = [
        ("resource", RESOURCE),
        ("scope", "mcp:tools offline_access"),
    ];
    let response = refresh_with(&setup, &client, &token, &extra).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!is_ended(&setup, &tokens));
}

/// RF4: a narrower scope is for one access token, and the grant keeps its scopes.
#[tokio::test]
async fn a_narrower_scope() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let mut params = client.request();
    params.push(("scope", "mcp:tools mcp:admin".to_owned()));
    let page = browser.authorize(&params).await;
    let url = browser.approve(&page).await;
    let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
    let tokens = json_of(&setup.exchange(&client, &code).await);
    let narrow = [("scope", "mcp:tools")];
    let response = refresh_with(&setup, &client, &token_of(&tokens), &narrow).await;
    let tokens = json_of(&response);
    assert_eq!(claims(&tokens)["scope"], "mcp:tools");
    let tokens = json_of(&setup.refresh(&client, &token_of(&tokens)).await);
    assert_eq!(claims(&tokens)["scope"], "mcp:admin mcp:tools");
}

/// RF4, US1: scopes that the user lost are refused before the token is used.
#[tokio::test]
async fn a_scope_that_the_user_lost() {
    let group = |name: &str, scopes: &str| ScopeGrant {
        rule: Some(ClaimRule::new("groups", ClaimTest::OneOf(vec![name.to_owned()])).unwrap()),
        scopes: Scopes::parse(scopes).unwrap(),
    };
    let setup = Setup::with(|settings| {
        settings.providers[0].grants =
            vec![group("staff", "mcp:tools"), group("admins", "mcp:admin")];
    });
    *setup.provider.user.lock() = json!({ "sub": "alice", "groups": ["staff", "admins"] });
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let mut params = client.request();
    params.push(("scope", "mcp:tools mcp:admin".to_owned()));
    let page = browser.authorize(&params).await;
    let url = browser.approve(&page).await;
    let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
    let tokens = json_of(&setup.exchange(&client, &code).await);
    *setup.provider.user.lock() = json!({ "sub": "alice", "groups": ["staff"] });
    setup.pass(setup.settings.lifetimes.recheck);
    let admin = [("scope", "mcp:admin")];
    let response = refresh_with(&setup, &client, &token_of(&tokens), &admin).await;
    assert_eq!(error_of(&response), "invalid_scope");
    setup.pass(11 * MINUTE);
    let response = setup.refresh(&client, &token_of(&tokens)).await;
    assert_eq!(response.status(), StatusCode::OK, "{response:?}");
    assert_eq!(json_of(&response)["scope"], "mcp:tools");
    assert!(!is_ended(&setup, &tokens));
}

/// RF5: a forged token does nothing.
#[tokio::test]
async fn forged_tokens() {
    let setup = Setup::new();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let token = token_of(&tokens);
    next(&setup, &client, &token).await;
    setup.pass(11 * MINUTE);
    let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
    let mut forged: Vec<String> = (0..bytes.len())
        .map(|position| {
            let mut bytes = bytes.clone();
            bytes[position] ^= 1;
            URL_SAFE_NO_PAD.encode(bytes)
        })
        .collect();
    forged.extend([
        token[1..].to_owned(),
        format!("{token}A"),
        format!("{token}="),
        URL_SAFE_NO_PAD.encode(&bytes[..bytes.len() - 32]),
        "a".repeat(20_000),
    ]);
    for token in forged {
        let response = setup.refresh(&client, &token).await;
        assert_eq!(error_of(&response), "invalid_grant", "{token}");
    }
    let foreign = Setup::new();
    let other = foreign.client().await;
    let foreign = token_of(&foreign.sign_in(&other).await);
    let response = setup.refresh(&client, &foreign).await;
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(!is_ended(&setup, &tokens));
}

/// RF6: the end of one installation of a program leaves the others signed in.
#[tokio::test]
async fn one_installation_signs_out() {
    let setup = Setup::new();
    let client = setup.client().await;
    let first = setup.sign_in(&client).await;
    let second = setup.sign_in(&client).await;
    let token = token_of(&first);
    let fields = [("client_id", client.id.as_str()), ("token", &token)];
    assert_eq!(
        setup.post("/oauth/revoke", &fields).await.status(),
        StatusCode::OK
    );
    assert!(is_ended(&setup, &first));
    assert!(!is_ended(&setup, &second));
    next(&setup, &client, &token_of(&second)).await;
}
