//! Rules: their scopes, claims and rate limits.

mod challenges;
mod claims_and_rates;

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use portcullis_guard::{Caller, GuardLayer, authorize::ScopeImplications};
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
