//! Claims and rate limits of rules.

use std::time::Duration;

use portcullis_guard::{
    authorize::{ClaimRule, ClaimTest},
    limit::{Rate, RateLimiter},
};

use super::*;

/// C14: the claims of a rule are checked before scopes. In report-only mode, a denial is only
/// reported.
#[tokio::test]
async fn rules_can_require_claims() {
    let mut fixture = Fixture::guarded("base");
    let team = ClaimRule::new("team", ClaimTest::OneOf(vec!["blue".to_owned()])).unwrap();
    let org = ClaimRule::new("org", ClaimTest::Present)
        .unwrap()
        .report_only();
    fixture.settings.rules = vec![
        MessageRule {
            claims: vec![team],
            ..rule(Some("tools/call"), Some("admin_*"), "admin")
        },
        MessageRule {
            claims: vec![org],
            ..rule(Some("tools/*"), None, "")
        },
    ];
    let token = |scopes: &str, team: &str| {
        fixture
            .test_issuer
            .token()
            .scope(scopes)
            .claim("team", team)
    };
    let (blue, red, poor) = (
        token("base admin", "blue"),
        token("base admin", "red"),
        token("base", "red"),
    );
    let identifier = fixture.initialize().await;
    for (token, name, decided, report_only_denial) in [
        (&blue, "admin_drop", (200, None), Some("claim.missing")),
        (&red, "admin_drop", (403, Some("claim.mismatch")), None),
        (&red, "add", (200, None), Some("claim.missing")),
        (&poor, "admin_drop", (403, Some("claim.mismatch")), None),
        (&poor, "add", (200, None), Some("claim.missing")),
    ] {
        fixture.use_token(token);
        let response = fixture
            .post(
                &[(SESSION, &identifier)],
                &request("tools/call", json!({"name": name})),
            )
            .await;
        assert_eq!(fixture.decided(), decided, "{name}");
        assert_eq!(
            fixture.reported().report_only_denial,
            report_only_denial,
            "{name}"
        );
        if response.status == 403 {
            assert!(!response.headers.contains_key("www-authenticate"));
            assert_eq!(response.json()["error"], "access_denied");
        }
    }
    let response = fixture
        .post(&[(SESSION, &identifier)], &request("ping", json!({})))
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(fixture.reported().report_only_denial, None);
}

/// J5: the rate of messages that a rule matches is limited for each principal. Only accepted
/// messages count, and the response is a JSON-RPC error.
#[tokio::test]
async fn tools_are_limited() {
    let mut fixture = Fixture::guarded("base");
    let rate = Rate::new(2, Duration::from_secs(60)).unwrap();
    let limit = Some(RateLimiter::new(rate, 100, Arc::new(fixture.clock.clone())));
    fixture.settings.rules = vec![MessageRule {
        limit,
        ..rule(Some("tools/call"), Some("slow_*"), "")
    }];
    let identifier = fixture.initialize().await;
    let call = |name: &str| request("tools/call", json!({"name": name}));
    for (name, expected) in [
        ("slow_one", (200, None)),
        ("slow_two", (200, None)),
        ("add", (200, None)),
        ("slow_one", (429, Some("limit.tool"))),
        ("add", (200, None)),
    ] {
        let response = fixture.post(&[(SESSION, &identifier)], &call(name)).await;
        assert_eq!(fixture.decided(), expected, "{name}");
        if response.status == 429 {
            assert_eq!(response.header("retry-after"), Some("30"));
            assert_eq!(response.json()["error"]["code"], -32603);
            assert_eq!(response.json()["id"], 7);
        }
    }
    let bob = |scope: &str| fixture.test_issuer.token().subject("bob").scope(scope);
    let (good, poor) = (bob("base"), bob(""));
    fixture.use_token(&good);
    let identifier = fixture.initialize().await;
    for (token, status) in [
        (&poor, 403),
        (&poor, 403),
        (&good, 200),
        (&good, 200),
        (&good, 429),
    ] {
        fixture.use_token(token);
        assert_eq!(
            fixture
                .post(&[(SESSION, &identifier)], &call("slow_one"))
                .await
                .status,
            status
        );
    }
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(
        fixture
            .post(&[(SESSION, &identifier)], &call("slow_one"))
            .await
            .status,
        200
    );
}

/// J5: without authentication, all callers share one limit.
#[tokio::test]
async fn tools_are_limited_without_principals() {
    let mut fixture = Fixture::open();
    let rate = Rate::new(1, Duration::from_secs(60)).unwrap();
    let limit = Some(RateLimiter::new(rate, 100, Arc::new(fixture.clock.clone())));
    fixture.settings.rules = vec![MessageRule {
        limit,
        ..rule(Some("ping"), None, "unheard")
    }];
    let sessions = [fixture.initialize().await, fixture.initialize().await];
    for (identifier, status) in sessions.iter().zip([200, 429]) {
        assert_eq!(
            fixture
                .post(&[(SESSION, identifier)], &request("ping", json!({})))
                .await
                .status,
            status
        );
    }
}
