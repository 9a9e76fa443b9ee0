//! Challenges and decisions of rejected requests.

use portcullis_guard::Operation;

use super::*;

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

/// B3: expiry is checked before scopes.
#[tokio::test]
async fn an_expired_token_is_unauthorized_with_any_scopes() {
    let mut fixture = Fixture::guarded("base");
    fixture.use_token(&fixture.test_issuer.token().scope("other").expires_in(-60));
    let response = fixture.post(&[], initialize()).await;
    assert_eq!(response.status, 401);
    assert_eq!(response.challenge().error.as_deref(), Some("invalid_token"));
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
