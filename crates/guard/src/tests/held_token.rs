//! Introspected tokens are kept for later checks, signed ones are not.

use http::Method;
use portcullis_testkit::ScriptedFetch;
use serde_json::json;

use super::support::{Setup, With, caller, request};

const TOKEN: &str = "opaque-canary";

/// L3, J3: the caller holds the introspected token, even if it is cached, and `Debug` does not show
/// it.
#[tokio::test]
async fn an_introspected_token_is_held() {
    let issuer = ScriptedFetch::new();
    let setup = Setup::introspecting(&issuer);
    issuer.publish(&setup.test_issuer);
    let resource = setup.settings.resource.as_str();
    let active = json!({ "active": true, "aud": resource, "sub": "alice", "scope": "read" });
    issuer.serve(
        setup.test_issuer.endpoint("introspect"),
        200,
        active.to_string(),
    );
    for _ in 0..2 {
        assert_eq!(
            setup
                .send(request(Method::POST, "/mcp").bearer(TOKEN))
                .await
                .status,
            200
        );
        let seen = setup.inner.take_only();
        let caller = caller(&seen);
        assert!(
            caller
                .held_token()
                .is_some_and(|held| held.watch().is_some())
        );
        assert!(!format!("{seen:?} {caller:?}").contains("canary"));
    }
    assert_eq!(issuer.hits(setup.test_issuer.endpoint("introspect")), 1);
}

/// L3: a token that is verified by its signature is not kept.
#[tokio::test]
async fn a_signed_token_is_not_held() {
    let setup = Setup::new();
    setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await;
    assert!(caller(&setup.inner.take_only()).held_token().is_none());
}
