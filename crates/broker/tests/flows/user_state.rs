//! The state of users at the provider (US).

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use portcullis_guard::authorize::{ClaimRule, ClaimTest};
use portcullis_identity_provider::ProviderKind;
use portcullis_testkit::TokenBuilder;
use serde_json::json;

use crate::{
    ends::is_ended,
    support::{
        Browser, Client, PROVIDER_CLIENT, Setup, error_of, json_of, location, param, provider,
        token_of,
    },
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Refreshes after `recheck`.
async fn refresh_late(setup: &Setup, client: &Client, token: &str) -> Response<Bytes> {
    setup.pass(setup.settings.lifetimes.recheck);
    setup.refresh(client, token).await
}

/// Lets the token endpoint of the provider fail.
fn fail(setup: &Setup, status: u16, error: &str) {
    let body = json!({ "error": error }).to_string();
    setup
        .network
        .serve(setup.provider.endpoint("token"), status, body);
}

fn last_refresh_token_at_provider(setup: &Setup) -> String {
    let requests = setup.network.requests(setup.provider.endpoint("token"));
    let form = portcullis_testkit::form(requests.last().unwrap());
    form["refresh_token"].clone()
}

/// M10, US1: the provider ended the sign-in of the user.
#[tokio::test]
async fn a_user_who_was_removed() {
    for error in ["invalid_grant", "interaction_required", "access_denied"] {
        let setup = Setup::new();
        let client = setup.client().await;
        let tokens = setup.sign_in(&client).await;
        fail(&setup, 400, error);
        let response = refresh_late(&setup, &client, &token_of(&tokens)).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(error_of(&response), "invalid_grant", "{error}");
        assert!(is_ended(&setup, &tokens), "{error}");
        assert!(setup.events.contains("UserEnded"));
        let response = setup.refresh(&client, &token_of(&tokens)).await;
        assert_eq!(error_of(&response), "invalid_grant");
    }
}

/// US1: the user no longer meets a rule, or is another one.
#[tokio::test]
async fn a_user_who_left_the_group() {
    for user in [
        json!({ "sub": "alice", "groups": ["guests"] }),
        json!({ "sub": "alice" }),
        json!({ "sub": "alice", "_claim_names": { "groups": "src1" } }),
        json!({ "sub": "mallory", "groups": ["staff"] }),
    ] {
        let setup = Setup::with(|settings| {
            let staff = ClaimTest::OneOf(vec!["staff".to_owned()]);
            settings.providers[0].allow = vec![ClaimRule::new("groups", staff).unwrap()];
        });
        *setup.provider.user.lock() = json!({ "sub": "alice", "groups": ["staff"] });
        let client = setup.client().await;
        let tokens = setup.sign_in(&client).await;
        *setup.provider.user.lock() = user.clone();
        let response = refresh_late(&setup, &client, &token_of(&tokens)).await;
        assert_eq!(error_of(&response), "invalid_grant", "{user}");
        assert!(is_ended(&setup, &tokens), "{user}");
        assert!(setup.events.contains("UserEnded"));
    }
}

/// US1: a provider that the operator removed keeps no user signed in.
#[tokio::test]
async fn a_provider_that_was_removed() {
    let setup = Setup::new();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let other = setup.restarted(|settings| {
        settings.providers = vec![provider("new", ProviderKind::Oidc, "https://new.example")];
    });
    let response = refresh_late(&other, &client, &token_of(&tokens)).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// US2: an outage keeps users signed in, until they were not checked for too long.
#[tokio::test]
async fn the_provider_is_down() {
    let setup = Setup::new();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let mut token = token_of(&tokens);
    let endpoint = setup.provider.endpoint("token");
    let jwks = setup.provider.endpoint("jwks");
    let outages: [(&str, &dyn Fn()); 6] = [
        ("connection", &|| setup.network.fail(&endpoint)),
        ("timeout", &|| setup.network.time_out(&endpoint)),
        ("503", &|| setup.network.serve(&endpoint, 503, "<html>")),
        ("429", &|| setup.network.serve(&endpoint, 429, "{}")),
        ("secret", &|| fail(&setup, 401, "invalid_client")),
        ("nonsense", &|| {
            setup.network.serve(&endpoint, 200, "<html>")
        }),
    ];
    for (name, outage) in &outages {
        outage();
        setup.pass(3 * HOUR);
        let response = setup.refresh(&client, &token).await;
        assert_eq!(response.status(), StatusCode::OK, "{name}");
        token = token_of(&json_of(&response));
    }
    setup.pass(6 * HOUR);
    let response = setup.refresh(&client, &token).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(error_of(&response), "temporarily_unavailable");
    assert!(response.headers().contains_key("retry-after"));
    // The token was not rotated: it is not a replay when the provider is back.
    setup.pass(HOUR);
    let restored = setup.restarted(|_| ());
    let response = restored.refresh(&client, &token).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!is_ended(&setup, &tokens));
    assert!(!setup.events.contains("GrantEnded"));
    assert_eq!(setup.network.hits(&jwks), 1);
}

/// US3: a new refresh token of the provider is kept, even if the rest of its response is not valid.
#[tokio::test]
async fn a_rotated_token_of_the_provider() {
    type Forge = Box<dyn Fn(TokenBuilder) -> String + Send>;
    let forgeries: Vec<Forge> = vec![
        Box::new(|token| token.sign()),
        Box::new(|token| token.audience("other").sign()),
        Box::new(|_| "a.b.c".to_owned()),
    ];
    for forge in forgeries {
        let setup = Setup::new();
        let client = setup.client().await;
        let tokens = setup.sign_in(&client).await;
        *setup.provider.sign.lock() = forge;
        *setup.provider.response.lock() = json!({ "refresh_token": "provider-second" });
        let response = refresh_late(&setup, &client, &token_of(&tokens)).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            last_refresh_token_at_provider(&setup),
            "provider-refresh-token"
        );
        *setup.provider.sign.lock() = Box::new(|token| token.sign());
        let token = token_of(&json_of(&response));
        refresh_late(&setup, &client, &token).await;
        assert_eq!(last_refresh_token_at_provider(&setup), "provider-second");
    }
}

/// US3: a response without a refresh token keeps the old one.
#[tokio::test]
async fn a_response_without_a_refresh_token() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut token = token_of(&setup.sign_in(&client).await);
    *setup.provider.response.lock() = json!({ "refresh_token": null });
    for _ in 0..3 {
        let response = refresh_late(&setup, &client, &token).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            last_refresh_token_at_provider(&setup),
            "provider-refresh-token"
        );
        token = token_of(&json_of(&response));
    }
}

/// US3: refreshes at once ask the provider once.
#[tokio::test(start_paused = true)]
async fn refreshes_at_once_ask_the_provider_once() {
    let setup = std::sync::Arc::new(Setup::new());
    let client = std::sync::Arc::new(setup.client().await);
    let token = token_of(&setup.sign_in(&client).await);
    let endpoint = setup.provider.endpoint("token");
    setup.pass(setup.settings.lifetimes.recheck);
    let gate = setup.network.hang(&endpoint);
    let attempts: Vec<_> = (0..5)
        .map(|_| {
            let (setup, client) = (setup.clone(), client.clone());
            let token = token.clone();
            tokio::spawn(async move { setup.refresh(&client, &token).await.status() })
        })
        .collect();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    gate.release();
    for attempt in attempts {
        assert_eq!(attempt.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(setup.network.hits(&endpoint), 2);
}

/// US4: without a refresh token of the provider, users stay signed in until `max_unchecked`.
#[tokio::test]
async fn a_provider_without_refresh_tokens() {
    let setup = Setup::new();
    *setup.provider.response.lock() = json!({ "refresh_token": null, "expires_in": 60 });
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let mut token = token_of(&tokens);
    for _ in 0..23 {
        setup.pass(HOUR);
        let response = setup.refresh(&client, &token).await;
        assert_eq!(response.status(), StatusCode::OK);
        token = token_of(&json_of(&response));
    }
    setup.pass(HOUR);
    let response = setup.refresh(&client, &token).await;
    // Only another sign-in can show that the user still has access.
    assert_eq!(error_of(&response), "invalid_grant");
    assert!(setup.events.contains("UserEnded"));
}

/// Returns a valid logout token for the session of the user.
fn logout_token(setup: &Setup) -> TokenBuilder {
    let event = json!({ "http://schemas.openid.net/event/backchannel-logout": {} });
    setup
        .provider
        .issuer
        .token()
        .typ("logout+jwt")
        .audience(PROVIDER_CLIENT)
        .without("client_id")
        .without("scope")
        .claim("events", event)
        .claim("sid", "session-1")
        .without("sub")
}

async fn log_out(setup: &Setup, token: &str) -> Response<Bytes> {
    setup
        .post("/oauth/logout/idp", &[("logout_token", token)])
        .await
}

/// US5: a logout token ends the grants of its session, or of its user, and no others.
#[tokio::test]
async fn a_logout_at_the_provider() {
    let setup = Setup::new();
    let client = setup.client().await;
    let first = setup.sign_in(&client).await;
    *setup.provider.user.lock() = json!({ "sub": "alice", "sid": "session-2" });
    let second = setup.sign_in(&client).await;
    *setup.provider.user.lock() = json!({ "sub": "bob", "sid": "session-3" });
    let bob = setup.sign_in(&client).await;
    let response = log_out(&setup, &logout_token(&setup).sign()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert!(is_ended(&setup, &first));
    assert!(!is_ended(&setup, &second));
    let of_user = logout_token(&setup).without("sid").subject("alice").sign();
    assert_eq!(log_out(&setup, &of_user).await.status(), StatusCode::OK);
    assert!(is_ended(&setup, &second));
    assert!(!is_ended(&setup, &bob));
    assert!(setup.events.contains("LoggedOut"));
    let response = setup.refresh(&client, &token_of(&first)).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// US5: a logout ends also a sign-in whose code is not exchanged yet.
#[tokio::test]
async fn a_logout_before_the_exchange() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    let code = param(&location(&browser.return_from(&url).await), "code").unwrap();
    let response = log_out(&setup, &logout_token(&setup).sign()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let response = setup.exchange(&client, &code).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// US5: forged and replayed logout tokens end nothing.
#[tokio::test]
async fn forged_logouts() {
    let setup = Setup::new();
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let valid = logout_token(&setup);
    let foreign = portcullis_testkit::TestIssuer::new("https://other.example").key();
    for (name, token) in [
        ("aud", valid.clone().audience("other").sign()),
        ("iss", valid.clone().issuer("https://other.example").sign()),
        ("nonce", valid.clone().claim("nonce", "n").sign()),
        ("no event", valid.clone().without("events").sign()),
        (
            "event",
            valid.clone().claim("events", json!({ "other": {} })).sign(),
        ),
        ("no jti", valid.clone().without("jti").sign()),
        ("no subject", valid.clone().without("sid").sign()),
        ("old", valid.clone().issued_in(-600).sign()),
        ("none", valid.unsigned("none")),
        ("foreign key", valid.clone().signed_by(foreign).sign()),
        (
            "id token",
            valid.clone().typ("JWT").without("events").sign(),
        ),
        ("not a token", "a.b.c".to_owned()),
        ("empty", String::new()),
    ] {
        let response = log_out(&setup, &token).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{name}");
    }
    assert!(!is_ended(&setup, &tokens));
    // Anybody can send them, so that they are rejected requests, and no failures of the provider.
    assert_eq!(setup.events.count("ProviderFailed"), 0);
    assert_eq!(setup.events.count("Rejected { endpoint: \"logout\""), 13);
    // A token of another session, and then the same again for a new sign-in.
    let valid = valid.sign();
    assert_eq!(log_out(&setup, &valid).await.status(), StatusCode::OK);
    let again = setup.sign_in(&client).await;
    let replayed = log_out(&setup, &valid).await;
    assert_eq!(replayed.status(), StatusCode::BAD_REQUEST);
    assert!(!is_ended(&setup, &again));
    let twice = [("logout_token", valid.as_str()), ("logout_token", "a")];
    let response = setup.post("/oauth/logout/idp", &twice).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let response = setup.post("/oauth/logout/other", &twice[..1]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

/// US1: the check happens at the limit of `recheck`, and not at each refresh.
#[tokio::test]
async fn the_provider_is_not_asked_too_often() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut token = token_of(&setup.sign_in(&client).await);
    for _ in 0..4 {
        setup.pass(12 * MINUTE);
        token = token_of(&json_of(&setup.refresh(&client, &token).await));
    }
    assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 1);
    setup.pass(2 * MINUTE);
    setup.refresh(&client, &token).await;
    assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 2);
}
