//! Introspection responses: active, inactive, invalid and missing ones.

mod claims;

use http::StatusCode;
use portcullis_discovery::{FetchError, FetchResponse};
use portcullis_testkit::ManualClock;

use super::*;

const START: u64 = ManualClock::START.as_secs();

/// Returns the code of the rejection for this response.
async fn rejection(response: Value) -> Option<&'static str> {
    let fixture = fixture();
    set_response(&fixture, &response);
    let code = fixture.rejection(OPAQUE).await;
    if code.is_some() {
        assert_eq!(fixture.verifier.cached_tokens(), 0);
    }
    code
}

/// D3: an active token gives a principal with the values of the response.
#[tokio::test(start_paused = true)]
async fn an_active_token_is_accepted() {
    let fixture = fixture();
    let mut response = active();
    for (member, value) in [
        ("iss", ISSUER),
        ("token_type", "Bearer"),
        ("username", "Alice"),
        ("typ", "Bearer"),
    ] {
        response[member] = json!(value);
    }
    response["groups"] = json!(["staff"]);
    set_response(&fixture, &response);
    let verified = fixture.verify(OPAQUE).await.unwrap();
    let principal = verified.principal();
    assert_eq!(principal.issuer(), fixture.test_issuer.issuer());
    assert_eq!(principal.subject(), Some("alice"));
    assert_eq!(principal.client(), Some("test-client"));
    assert_eq!(principal.scopes().to_string(), "mcp:admin mcp:tools");
    assert_eq!(principal.expires().as_secs(), START + 300);
    assert_eq!(principal.claims()["username"], "Alice");
    assert_eq!(principal.claims()["groups"], json!(["staff"]));
}

/// D3: an inactive token is rejected and introspected again by the next request.
#[tokio::test(start_paused = true)]
async fn an_inactive_token_is_rejected() {
    assert_eq!(
        rejection(active_with("active", false)).await,
        Some("token.inactive")
    );
    let fixture = fixture();
    set_response(&fixture, &json!({"active": false}));
    for _ in 0..2 {
        assert_eq!(fixture.rejection(OPAQUE).await, Some("token.inactive"));
    }
    assert_eq!(calls(&fixture), 2);
    set_response(&fixture, &active());
    assert_eq!(fixture.rejection(OPAQUE).await, None);
}

/// D3: only the boolean `true` is active. Other values are not a valid response.
#[tokio::test(start_paused = true)]
async fn active_is_the_boolean_true() {
    for value in [
        json!("true"),
        json!(1),
        json!(null),
        json!([true]),
        json!({}),
        json!(""),
    ] {
        assert_eq!(
            rejection(active_with("active", value.clone())).await,
            Some("issuer.unavailable"),
            "{value}"
        );
    }
    assert_eq!(
        rejection(active_without("active")).await,
        Some("issuer.unavailable")
    );
}

/// J1: the log has one line for a rejected token: with the claims of the introspection response if
/// that is the reason.
#[tokio::test(start_paused = true)]
async fn a_rejection_is_logged_once() {
    let lines = async |fixture: &Fixture, token: &str| {
        // Registers the event, so that no other thread registers it, as disabled, while the log is
        // attached.
        assert!(fixture.rejection(token).await.is_some());
        let (log, _guard) = Logged::here();
        assert!(fixture.rejection(token).await.is_some());
        log.lines()
            .into_iter()
            .filter(|line| line.contains("token rejected"))
            .collect::<Vec<_>>()
    };
    for (fixture, is_opaque) in [(fixture(), true), (fixture(), false), (both(), false)] {
        set_response(&fixture, &active_with("aud", "https://other.example"));
        let token = if is_opaque {
            OPAQUE.to_owned()
        } else {
            fixture.test_issuer.token().sign()
        };
        let logged = lines(&fixture, &token).await;
        assert!(
            matches!(&*logged, [line] if line.contains("token.audience=https://other.example")),
            "{logged:?}"
        );
    }
    for fixture in [fixture(), both()] {
        let other_type = fixture.test_issuer.token().typ("logout+jwt").sign();
        let logged = lines(&fixture, &other_type).await;
        assert!(
            matches!(&*logged, [line] if line.contains("token.issuer=https://issuer.example")),
            "{logged:?}"
        );
    }
    let strict = Fixture::with(|issuer| {
        issuer.validation = Validation::Introspection(client());
        issuer.require_at_jwt = true;
    });
    let logged = lines(&strict, OPAQUE).await;
    assert!(
        matches!(&*logged, [line] if line.contains("token.type_not_allowed")),
        "{logged:?}"
    );
}

/// D3, B2: after a failed call the token is not rejected, and the error has a `retry_after`.
#[tokio::test(start_paused = true)]
async fn a_failed_call_does_not_reject_the_token() {
    let good = active().to_string();
    let bodies = [
        (201, good.clone()),
        (204, String::new()),
        (301, good.clone()),
        (302, good.clone()),
        (307, good.clone()),
        (400, good.clone()),
        (401, r#"{"error":"invalid_client"}"#.to_owned()),
        (403, good.clone()),
        (500, good.clone()),
        (503, String::new()),
        (200, String::new()),
        (200, "<html>".to_owned()),
        (200, format!("[{good}]")),
        (200, "true".to_owned()),
        (200, format!("{good}{good}")),
        (200, good.replacen('{', r#"{"active":true,"#, 1)),
        (
            200,
            format!("{good}{}", " ".repeat(64 * 1024 + 1 - good.len())),
        ),
        (200, active_with("exp", "soon").to_string()),
        (200, active_with("exp", -1).to_string()),
        (200, active_with("aud", 5).to_string()),
        (200, active_with("scope", 5).to_string()),
        (200, active_with("iss", 5).to_string()),
        (
            200,
            active_with("token_type", json!(["Bearer"])).to_string(),
        ),
    ];
    for (status, body) in bodies {
        let fixture = fixture();
        fixture.fake.serve(endpoint(&fixture), status, body.clone());
        let error = fixture
            .verifier
            .verify(&AccessToken::new(OPAQUE))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "issuer.unavailable", "{status} {body}");
        assert_eq!(
            error.retry_after(),
            Some(Duration::from_secs(5)),
            "{status} {body}"
        );
        assert_eq!(calls(&fixture), 1);
        assert_eq!(fixture.verifier.cached_tokens(), 0);
        assert!(matches!(
            fixture.issuer.health(),
            IssuerHealth::Introspected { reason: Some(_) }
        ));
    }
}

/// D3: a response of 64 KiB is parsed.
#[tokio::test(start_paused = true)]
async fn a_response_of_the_maximum_length_is_parsed() {
    let fixture = fixture();
    let good = active().to_string();
    fixture.fake.serve(
        endpoint(&fixture),
        200,
        format!("{good}{}", " ".repeat(64 * 1024 - good.len())),
    );
    assert_eq!(fixture.rejection(OPAQUE).await, None);
}

/// D3: network errors and timeouts do not reject the token, even if the fetcher has no timeout of
/// its own.
#[tokio::test(start_paused = true)]
async fn a_network_error_does_not_reject_the_token() {
    let fixture = fixture();
    fixture.fake.fail(endpoint(&fixture));
    assert_eq!(fixture.rejection(OPAQUE).await, Some("issuer.unavailable"));
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Introspected {
            reason: Some("fetch.connect")
        }
    );

    fixture.fake.time_out(endpoint(&fixture));
    assert_eq!(fixture.rejection(OPAQUE).await, Some("issuer.unavailable"));
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Introspected {
            reason: Some("fetch.timeout")
        }
    );

    let _gate = fixture.fake.hang(endpoint(&fixture));
    let before = Instant::now();
    assert_eq!(fixture.rejection(OPAQUE).await, Some("issuer.unavailable"));
    assert_eq!(before.elapsed(), Duration::from_secs(5));

    settle().await;
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Introspected {
            reason: Some("introspection.timeout")
        }
    );
}

/// D3: one deadline covers the discovery of the endpoint, the keys and the call.
#[tokio::test(start_paused = true)]
async fn one_deadline_for_all_calls() {
    let fixture = both();
    let _call = fixture.fake.hang(endpoint(&fixture));
    let keys = fixture.fake.hang(fixture.test_issuer.endpoint("jwks"));
    let token = fixture.test_issuer.token().sign();
    let before = Instant::now();
    let slow_keys = async {
        keys.reached().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        keys.release();
    };
    let (rejection, ()) = tokio::join!(fixture.rejection(&token), slow_keys);
    assert_eq!(rejection, Some("issuer.unavailable"));
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(calls(&fixture), 1);
}

/// D4, C11: an active token is cached for 30 s, but not beyond its expiration time.
#[tokio::test(start_paused = true)]
async fn an_active_token_is_cached() {
    for (response, seconds) in [
        (active(), 30),
        (active_without("exp"), 30),
        (active_with("exp", START + 12), 12),
    ] {
        let fixture = fixture();
        set_response(&fixture, &response);
        for _ in 0..10 {
            assert_eq!(fixture.rejection(OPAQUE).await, None);
        }
        assert_eq!(calls(&fixture), 1);
        fixture
            .clock
            .advance(Duration::from_millis(seconds * 1000 - 1));
        assert!(fixture.verifier.cached(OPAQUE).is_some(), "{response}");
        fixture.clock.advance(Duration::from_millis(1));
        assert!(fixture.verifier.cached(OPAQUE).is_none(), "{response}");
        assert_eq!(fixture.verifier.cached_tokens(), 0);
        set_response(&fixture, &json!({"active": false}));
        assert_eq!(fixture.rejection(OPAQUE).await, Some("token.inactive"));
        assert_eq!(calls(&fixture), 2);
    }
}

/// D4: the cache lifetime can be shorter or zero.
#[tokio::test(start_paused = true)]
async fn the_cache_lifetime_can_be_reduced() {
    let fixture = fixture_with(|settings| settings.cache_lifetime = Duration::ZERO);
    for expected in 1..=3 {
        assert_eq!(fixture.rejection(OPAQUE).await, None);
        assert_eq!(calls(&fixture), expected);
        assert_eq!(fixture.verifier.cached_tokens(), 0);
    }
}

/// D3: without `exp`, an introspected token expires after 30 s, and a signed token at its own
/// `exp`.
#[tokio::test(start_paused = true)]
async fn a_response_without_expiry() {
    let fixture = fixture();
    set_response(&fixture, &active_without("exp"));
    assert_eq!(
        fixture
            .verify(OPAQUE)
            .await
            .unwrap()
            .principal()
            .expires()
            .as_secs(),
        START + 30
    );
    let fixture = both();
    set_response(&fixture, &active_without("exp"));
    let token = fixture.test_issuer.token().expires_in(200).sign();
    assert_eq!(
        fixture
            .verify(&token)
            .await
            .unwrap()
            .principal()
            .expires()
            .as_secs(),
        START + 200
    );
}

/// D5: errors contain neither the token nor the secret nor the response.
#[tokio::test(start_paused = true)]
async fn errors_contain_no_secrets() {
    let fixture = fixture();
    fixture.fake.respond(endpoint(&fixture), |request| {
        assert!(!format!("{request:?}").contains("hush"));
        let body = r#"{"error":"canary"}"#.into();
        Ok::<_, FetchError>(FetchResponse {
            status: StatusCode::UNAUTHORIZED,
            headers: Default::default(),
            body,
            sent: Default::default(),
        })
    });
    let error = fixture
        .verifier
        .verify(&AccessToken::new(OPAQUE))
        .await
        .unwrap_err();
    let output = format!(
        "{error} {error:?} {:?} {:?}",
        fixture.issuer, fixture.verifier
    );
    for canary in [OPAQUE, "hush", "canary"] {
        assert!(!output.contains(canary), "{output}");
    }
}
