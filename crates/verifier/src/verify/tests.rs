//! The verification of tokens, from the size and syntax on.

use std::time::Duration;

use portcullis_jose::Algorithm;
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer, flip_signature};
use serde_json::json;
use tokio::runtime::Handle;

use super::*;
use crate::{
    IssuerSettings,
    testing::{Fixture, Logged, trusted, verifier_of},
};

mod cache;
mod claims;
mod inactive;
mod issuers;
mod redaction;
mod revoked;
mod signatures;
mod throttle;

const OTHER: &str = "https://other.example";

/// Returns a fixture whose issuer has its keys.
async fn ready() -> Fixture {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    fixture
}

fn allowing(algorithms: impl IntoIterator<Item = Algorithm>) -> impl FnOnce(&mut IssuerSettings) {
    let algorithms = algorithms.into_iter().collect();
    move |settings| settings.algorithms = algorithms
}

/// Returns a fixture that also accepts tokens of another issuer, whose key has the same identifier.
async fn with_other_issuer() -> (Fixture, TestIssuer, Arc<TrustedIssuer>) {
    let mut fixture = ready().await;
    let other = TestIssuer::new(OTHER).with_clock(fixture.clock.clone());
    assert_eq!(other.key().kid(), fixture.test_issuer.key().kid());
    fixture.fake.publish(&other);
    let issuer = trusted(
        IssuerSettings::new(other.issuer().clone()),
        &fixture.fake,
        &fixture.clock,
        Handle::current(),
    );
    issuer.refresh_now().await.unwrap();
    fixture.verifier = verifier_of(
        TestIssuer::RESOURCE,
        vec![Arc::clone(&fixture.issuer), Arc::clone(&issuer)],
        &fixture.clock,
    );
    (fixture, other, issuer)
}

/// C2: strings that are not signed JWTs are malformed, and no issuer is called.
#[tokio::test(start_paused = true)]
async fn other_strings_are_malformed() {
    let fixture = Fixture::new();
    for token in [
        "",
        ".",
        "..",
        "...",
        "opaque",
        "a.b.c",
        "\u{0}",
        "é.é.é",
        "eyJhbGciOiJSUzI1NiJ9..x",
        "eyJhbGciOiJSUzI1NiJ9.e30.",
    ] {
        assert!(fixture.rejection(token).await.is_some(), "{token:?}");
    }
    assert_eq!(fixture.rejection("opaque").await, Some("token.malformed"));
    assert_eq!(
        fixture.rejection("a.b.c.d.e").await,
        Some("token.encrypted")
    );

    for payload in [
        "",
        "7",
        "[]",
        "\"x\"",
        "{",
        "{}x",
        "[\"https://issuer.example\"]",
    ] {
        let code = fixture
            .rejection(&fixture.test_issuer.token().raw_payload(payload).sign())
            .await;
        assert_eq!(code, Some("claims.not_an_object"), "{payload}");
    }
    assert!(fixture.fake.urls().is_empty());
}

/// C9: a token above the limit is rejected before it is parsed.
#[tokio::test(start_paused = true)]
async fn size_is_checked_first() {
    let fixture = ready().await;
    assert_eq!(
        fixture.rejection(&"x".repeat(16 * 1024 + 1)).await,
        Some("token.too_large")
    );
    assert_eq!(
        fixture.rejection(&"x".repeat(16 * 1024)).await,
        Some("token.malformed")
    );

    let token = fixture.test_issuer.token().sign();
    for (limit, expected) in [
        (token.len(), None),
        (token.len() - 1, Some("token.too_large")),
    ] {
        let mut settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        settings.max_token_bytes = limit;
        let verifier = Verifier::new(
            settings,
            vec![Arc::clone(&fixture.issuer)],
            Arc::new(fixture.clock.clone()),
        )
        .unwrap();
        let result = verifier.verify(&AccessToken::new(token.as_str())).await;
        assert_eq!(result.err().map(|error| error.code()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_future_is_send() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let fixture = ready().await;
    let token = AccessToken::new(fixture.test_issuer.token().sign());
    assert!(sendable(fixture.verifier.verify(&token)).await.is_ok());
}

/// C10: only errors for tokens that were not verified have a `retry_after`.
#[test]
fn only_unavailable_errors_have_a_retry_time() {
    let second = Duration::from_secs(1);
    for error in [
        VerifyError::IssuerUnavailable {
            retry_after: second,
        },
        VerifyError::IntrospectionBusy,
        VerifyError::Busy,
    ] {
        assert!(error.is_unavailable(), "{error}");
        assert!(error.retry_after() == Some(second), "{error}");
    }
    for error in [
        VerifyError::Expired,
        VerifyError::Inactive,
        VerifyError::Jws(JoseError::UnknownKey),
    ] {
        assert!(!error.is_unavailable(), "{error}");
        assert!(error.retry_after().is_none(), "{error}");
    }
}
