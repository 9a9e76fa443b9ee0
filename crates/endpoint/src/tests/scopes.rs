//! Scopes, claims and rate limits of rules.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use portcullis_guard::{
    Caller, GuardLayer, Operation,
    authorize::{ClaimRule, ClaimTest, ScopeImplications},
    limit::{Rate, RateLimiter},
};
use portcullis_metadata::{BearerChallenge, Scopes, parse_challenges};
use serde_json::json;
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;

use super::fixture::*;
use crate::{
    AdmittedBody, EndpointLayer, EndpointSettings, EndpointSettingsError, HttpService, MessageRule,
    NameGlob,
};

/// A rule for these methods and names that requires these scopes.
fn rule(method: Option<&str>, name: Option<&str>, scopes: &str) -> MessageRule {
    let glob = |pattern: &str| NameGlob::parse(pattern).unwrap();
    MessageRule {
        method: method.map(glob),
        name: name.map(glob),
        scopes: Scopes::parse(scopes).unwrap(),
        ..MessageRule::default()
    }
}

fn rules() -> Vec<MessageRule> {
    vec![
        rule(Some("tools/call"), Some("admin_*"), "admin"),
        rule(Some("tools/*"), None, "tools"),
        rule(None, Some("file:///secret/*"), "secrets"),
        rule(Some("logging/*"), None, "logs"),
    ]
}

impl Received {
    fn challenge(&self) -> BearerChallenge {
        let values = self
            .headers
            .get_all("www-authenticate")
            .iter()
            .map(|value| value.as_bytes());
        BearerChallenge::from_challenges(&parse_challenges(values).unwrap()).unwrap()
    }

    fn scope(&self) -> String {
        self.challenge().scope.unwrap().to_string()
    }
}

/// J4: a decision has the method and tool of the message, also if it was rejected, and neither
/// without a message.
#[tokio::test]
async fn decisions_have_the_operation_of_the_message() {
    let mut fixture = Fixture::guarded("");
    fixture.settings.rules = rules();
    let identifier = fixture.initialize().await;
    assert_eq!(
        fixture.reported().operation,
        Some(Operation::new("initialize", None))
    );

    let call = |name: &str| request("tools/call", json!({"name": name}));
    for (message, status) in [
        (call("add"), 403),
        (call("admin_drop"), 403),
        (request("ping", json!({})), 200),
    ] {
        assert_eq!(
            fixture
                .post(&[(SESSION, &identifier)], &message)
                .await
                .status,
            status
        );
        let name = message["params"]["name"].as_str();
        assert_eq!(
            fixture.reported().operation,
            Some(Operation::new(message["method"].as_str().unwrap(), name))
        );
    }
    fixture.post(&[], &call("add")).await;
    assert_eq!(
        fixture.reported().operation,
        Some(Operation::new("tools/call", Some("add")))
    );

    fixture.post(&[(SESSION, &identifier)], &json!([])).await;
    assert_eq!(fixture.reported().operation, None);
}

/// B3, B9: one challenge has the scopes of all matching rules, and those that the token has.
#[tokio::test]
async fn one_challenge_has_all_scopes() {
    let mut fixture = Fixture::guarded("base");
    fixture.settings.rules = rules();
    let identifier = fixture.initialize().await;
    let token = |scopes: &str| fixture.test_issuer.token().scope(scopes);
    let none = token("");
    let some = token("logs unrelated");
    let most = token("base tools");
    let drop_all = request("tools/call", json!({"name": "admin_drop"}));
    for (token, scope) in [
        (none, "admin base tools"),
        (some, "admin base logs tools"),
        (most, "admin base tools"),
    ] {
        fixture.use_token(&token);
        let response = fixture.post(&[(SESSION, &identifier)], &drop_all).await;
        assert_eq!(response.status, 403);
        assert_eq!(response.scope(), scope.to_owned());
        let challenge = response.challenge();
        assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
        assert_eq!(
            challenge.resource_metadata.as_deref(),
            Some("https://mcp.example.com/.well-known/oauth-protected-resource/mcp")
        );
        assert_eq!(response.json()["error"], "insufficient_scope");
        assert_eq!(fixture.decided(), (403, Some("scope.insufficient")));
    }
    assert_eq!(fixture.inner.seen().len(), 1);

    fixture.use_token(&fixture.test_issuer.token().scope("base tools admin"));
    assert_eq!(
        fixture
            .post(&[(SESSION, &identifier)], &drop_all)
            .await
            .status,
        200
    );
}

/// B9: a message needs exactly the scopes of the rules for its method and name.
#[tokio::test]
async fn rules_apply_by_method_and_name() {
    let mut fixture = Fixture::guarded("");
    fixture.settings.rules = rules();
    let identifier = fixture.initialize().await;
    for (message, needed) in [
        (request("ping", json!({})), ""),
        (request("tools/list", json!({})), "tools"),
        (request("tools/call", json!({"name": "add"})), "tools"),
        (
            request("tools/call", json!({"name": "administer"})),
            "tools",
        ),
        (request("prompts/get", json!({"name": "admin_help"})), ""),
        (
            request("resources/read", json!({"uri": "file:///secret/plan"})),
            "secrets",
        ),
        (
            request("resources/subscribe", json!({"uri": "file:///secret/plan"})),
            "secrets",
        ),
        (
            request("resources/read", json!({"uri": "file:///public"})),
            "",
        ),
        (
            json!({"jsonrpc": "2.0", "method": "logging/setLevel"}),
            "logs",
        ),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), ""),
    ] {
        fixture.use_token(&fixture.test_issuer.token().scope(needed));
        assert_eq!(
            fixture
                .post(&[(SESSION, &identifier)], &message)
                .await
                .status,
            200,
            "{message}"
        );
        fixture.use_token(&fixture.test_issuer.token().scope("other"));
        let expected = if needed.is_empty() { 200 } else { 403 };
        assert_eq!(
            fixture
                .post(&[(SESSION, &identifier)], &message)
                .await
                .status,
            expected,
            "{message}"
        );
    }
}

/// B9: a rule applies to every spelling of a name.
#[tokio::test]
async fn a_rule_applies_to_every_spelling() {
    let mut fixture = Fixture::guarded("");
    fixture.settings.rules = vec![rule(Some("tools/call"), Some("admin"), "admin")];
    let identifier = fixture.initialize().await;
    for (body, status) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0061dmin"}}"#,
            403,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"m\u0065thod":"tools\/call","params":{"n\u0061me":"admin"}}"#,
            403,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"admin"}}"#,
            403,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ADMIN"}}"#,
            403,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","name":"admin"}}"#,
            400,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","Name":"admin"}}"#,
            400,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["admin"]}}"#,
            400,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"admin"}}"#,
            400,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{},"params":{"name":"admin"}}"#,
            400,
        ),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin"}}]"#,
            400,
        ),
    ] {
        assert_eq!(
            fixture.post(&[(SESSION, &identifier)], body).await.status,
            status,
            "{body}"
        );
    }
    let headers = [
        (VERSION, "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "admin"),
    ];
    assert_eq!(
        fixture
            .post(&headers, modern("tools/call", json!({"name": "admin"})))
            .await
            .status,
        403
    );
    assert_eq!(fixture.inner.seen().len(), 1);
}

/// B3: GET, DELETE and `initialize` need the required scopes, too.
#[tokio::test]
async fn required_scopes_are_needed_for_everything() {
    let mut fixture = Fixture::guarded("base");
    let identifier = fixture.initialize().await;
    fixture.use_token(&fixture.test_issuer.token().scope("other"));
    for method in ["GET", "DELETE"] {
        let response = fixture.send(method, &[(SESSION, &identifier)], "").await;
        assert_eq!(response.status, 403, "{method}");
        assert_eq!(response.scope(), "base".to_owned(), "{method}");
    }
    assert_eq!(fixture.post(&[], initialize()).await.status, 403);
    assert_eq!(fixture.sessions.len(), 1);
    assert_eq!(fixture.inner.seen().len(), 1);
}

/// B3: expiry is checked before scopes.
#[tokio::test]
async fn an_expired_token_is_unauthorized_with_any_scopes() {
    let mut fixture = Fixture::guarded("base");
    fixture.use_token(&fixture.test_issuer.token().scope("other").expires_in(-60));
    let response = fixture.post(&[], initialize()).await;
    assert_eq!(response.status, 401);
    assert_eq!(response.challenge().error.as_deref(), Some("invalid_token"));
}

/// F7: without authorization, rules do not apply.
#[tokio::test]
async fn without_authorization_there_are_no_scopes() {
    let mut fixture = Fixture::open();
    fixture.settings.rules = vec![rule(None, None, "admin")];
    assert_eq!(fixture.post(&[], initialize()).await.status, 200);
}

/// A5: `offline_access` is not a scope of a resource.
#[tokio::test]
async fn offline_access_is_rejected_at_start() {
    let fixture = Fixture::open();
    let refused = |change: fn(&mut EndpointSettings)| {
        let mut settings = fixture.settings.clone();
        change(&mut settings);
        EndpointLayer::new(settings).err()
    };
    assert_eq!(refused(|_| {}), None);
    assert_eq!(
        refused(|settings| settings.required_scopes = Scopes::parse("offline_access").unwrap()),
        Some(EndpointSettingsError::OfflineAccess)
    );
    assert_eq!(
        refused(|settings| settings.rules = vec![rule(None, None, "a offline_access")]),
        Some(EndpointSettingsError::OfflineAccess)
    );
    assert_eq!(
        refused(|settings| settings.revisions = portcullis_mcp::Revisions::from_iter([])),
        Some(EndpointSettingsError::NoRevision)
    );

    let codes = [
        EndpointSettingsError::OfflineAccess,
        EndpointSettingsError::NoRevision,
    ]
    .map(EndpointSettingsError::code);
    assert_eq!(codes, ["settings.offline_access", "settings.no_revision"]);
}

/// J1: clients get generic messages. Only the guard gets the reason.
#[tokio::test]
async fn clients_do_not_get_reasons() {
    let fixture = Fixture::guarded("");
    let response = fixture
        .post(&[(SESSION, "made-up")], request("ping", json!({})))
        .await;
    assert_eq!(fixture.decided(), (400, Some("session.unknown")));
    assert!(!String::from_utf8_lossy(&response.body).contains("unknown"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("x-request-id").unwrap().len(), 36);
}

#[tokio::test]
async fn a_plain_service_finds_the_principal() {
    let fixture = Fixture::guarded("");
    let whoami = service_fn(|request: Request<AdmittedBody>| async move {
        let caller = request.extensions().get::<Caller>().unwrap();
        let subject = caller
            .principal()
            .and_then(|principal| principal.subject())
            .unwrap()
            .to_owned();
        assert!(!request.headers().contains_key("authorization"));
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(subject)))
    });
    let endpoint = EndpointLayer::new(fixture.settings.clone())
        .unwrap()
        .layer(HttpService::new(whoami));
    let guarded = GuardLayer::new(Arc::clone(&fixture.settings.resource)).layer(endpoint);
    let request = Request::post("/mcp")
        .header("host", "mcp.example.com")
        .header(
            "authorization",
            format!("Bearer {}", fixture.test_issuer.token().sign()),
        )
        .header("content-type", "application/json")
        .body(Full::<Bytes>::from(initialize().to_string()))
        .unwrap();
    let response = guarded.oneshot(request).await.unwrap();
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap()
        .to_bytes();
    assert_eq!(body, "alice");
}

/// B7: the scope implications of the guard also apply to the scopes of the endpoint.
#[tokio::test]
async fn broader_scopes_are_enough() {
    let mut fixture = Fixture::guarded_with("base", |guard| {
        let implied = Scopes::parse("base tools").unwrap();
        guard.scope_implications = ScopeImplications::new([("operator", implied)]).unwrap();
    });
    fixture.settings.rules = rules();
    fixture.use_token(&fixture.test_issuer.token().scope("operator"));
    let identifier = fixture.initialize().await;
    for (name, status) in [("add", 200), ("admin_drop", 403)] {
        let response = fixture
            .post(
                &[(SESSION, &identifier)],
                &request("tools/call", json!({"name": name})),
            )
            .await;
        assert_eq!(response.status, status, "{name}");
        if status == 403 {
            assert_eq!(response.scope(), "admin base operator tools");
        }
    }
}

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
