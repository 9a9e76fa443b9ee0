//! A provider that rejects the broker's application.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use crate::{
    log::Log,
    support::{Browser, Setup, json_of, param, reference_of, token_of},
};

const MINUTE: Duration = Duration::from_secs(60);

fn reject(setup: &Setup, error: &str) {
    let body = json!({ "error": error, "error_description": "secret detail" });
    let endpoint = setup.provider.endpoint("token");
    setup.network.serve(endpoint, 401, body.to_string());
}

/// A wrong client secret is logged once a minute with what to correct, however many users try to
/// sign in. The user learns to tell the operator, with a reference that one line of the log has.
#[tokio::test]
async fn a_wrong_secret_is_a_warning_with_its_fix() {
    let (log, _guard) = Log::here();
    let setup = Setup::new();
    let client = setup.client().await;
    reject(&setup, "invalid_client");
    let warnings = || {
        let lines = log.lines();
        let warnings = lines.into_iter().filter(|line| line.starts_with("WARN"));
        warnings.collect::<Vec<_>>()
    };
    for expected in [1, 1, 2] {
        let before = log.lines().len();
        let target = Browser::new(&setup).sign_in(&client).await;
        let description = param(&target, "error_description").unwrap();
        assert!(description.contains("tell the operator"), "{description}");
        let reference = reference_of(&description);
        let lines = log.lines().split_off(before);
        let about = lines
            .iter()
            .filter(|line| line.contains("provider.application_rejected"));
        let about: Vec<_> = about.collect();
        assert_eq!(about.len(), 1, "{lines:?}");
        assert!(about[0].contains(reference), "{about:?}");
        let error = param(&target, "error");
        assert_eq!(error.as_deref(), Some("temporarily_unavailable"));
        assert!(!target.as_str().contains("detail"));
        let warnings = warnings();
        assert_eq!(warnings.len(), expected, "{warnings:?}");
        for text in [
            "[[broker.provider]] \"idp\"",
            "client_secret",
            "provider.application_rejected",
            "invalid_client",
        ] {
            assert!(warnings[0].contains(text), "{text}: {warnings:?}");
        }
        setup.pass(MINUTE / 2);
    }
    let all = log.lines().join("\n");
    assert_eq!(all.matches("a sign-in failed").count(), 1, "{all}");
    assert!(!all.contains("secret detail") && !all.contains("secret-at-idp"));
    assert_eq!(setup.events.count("provider.application_rejected"), 3);
}

/// A refresh that finds the wrong secret warns as well, and keeps the grant (US2).
#[tokio::test]
async fn a_wrong_secret_at_a_refresh() {
    let (log, _guard) = Log::here();
    let setup = Setup::new();
    let client = setup.client().await;
    let mut token = token_of(&setup.sign_in(&client).await);
    for (error, fix) in [
        ("unauthorized_client", "client_id"),
        ("redirect_uri_mismatch", "provider.redirect_uri"),
        ("invalid_scope", "scopes"),
    ] {
        reject(&setup, error);
        setup.pass(setup.settings.lifetimes.recheck);
        let response = setup.refresh(&client, &token).await;
        assert_eq!(response.status(), StatusCode::OK);
        token = token_of(&json_of(&response));
        let lines = log.lines();
        let last = lines.iter().rfind(|line| line.starts_with("WARN")).unwrap();
        assert!(last.contains(error) && last.contains(fix), "{last}");
    }
}
