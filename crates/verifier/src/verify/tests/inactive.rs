//! Tokens that introspection has found inactive, here or in another process.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use portcullis_discovery::FetchResponse;
use portcullis_metadata::Secret;

use super::*;
use crate::{InactiveTokens, IntrospectionSettings, TokenId, Validation, testing::settle};

const TOKEN: &str = "opaque-canary";

/// Keeps the ids that were reported.
#[derive(Debug, Default)]
struct Found(Mutex<Vec<TokenId>>);

impl InactiveTokens for Found {
    fn found(&self, token: TokenId) {
        self.0.lock().push(token);
    }
}

/// A fixture whose issuer introspects tokens, and what its verifier reports.
async fn sharing() -> (Fixture, Arc<Found>) {
    let introspection = IntrospectionSettings {
        client_secret: Some(Secret::new("hush")),
        ..IntrospectionSettings::new("portcullis")
    };
    let mut fixture =
        Fixture::with(|issuer| issuer.validation = Validation::Introspection(introspection));
    let found = Arc::<Found>::default();
    fixture.verifier = reporting_verifier(&fixture, &found);
    respond(&fixture, true);
    fixture.issuer.refresh_now().await.unwrap();
    (fixture, found)
}

/// Returns a verifier of the fixture's issuer that reports inactive tokens.
fn reporting_verifier(fixture: &Fixture, found: &Arc<Found>) -> Arc<Verifier> {
    let mut settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
    settings.inactive_tokens = Some(found.clone());
    Verifier::new(
        settings,
        vec![Arc::clone(&fixture.issuer)],
        Arc::new(fixture.clock.clone()),
    )
    .unwrap()
}

fn respond(fixture: &Fixture, is_active: bool) {
    let response = json!({ "active": is_active, "aud": TestIssuer::RESOURCE, "client_id": "editor", "sub": "alice" });
    fixture.fake.serve(
        fixture.test_issuer.endpoint("introspect"),
        200,
        response.to_string(),
    );
}

fn id() -> TokenId {
    TokenId::of(&AccessToken::new(TOKEN))
}

/// E13: an inactive token is reported, also one that was never accepted here. A token that is
/// dropped is introspected again.
#[tokio::test(start_paused = true)]
async fn a_dropped_token_is_introspected_again() {
    let (fixture, found) = sharing().await;
    assert!(!fixture.verifier.drop_token(id()), "it is not known");
    fixture.verify(TOKEN).await.unwrap();
    respond(&fixture, false);
    assert!(fixture.verify(TOKEN).await.is_ok(), "it is cached");
    assert!(found.0.lock().is_empty());
    assert!(fixture.verifier.drop_token(id()));
    assert!(!fixture.verifier.drop_token(id()));
    assert_eq!(fixture.rejection(TOKEN).await, Some("token.inactive"));
    assert_eq!(
        fixture.rejection("never accepted").await,
        Some("token.inactive")
    );
    assert_eq!(
        *found.0.lock(),
        [id(), TokenId::of(&AccessToken::new("never accepted"))]
    );
}

/// E13, L3: a dropped token that an open stream depends on is checked at once.
#[tokio::test(start_paused = true)]
async fn a_dropped_token_is_checked_at_once() {
    let (fixture, _) = sharing().await;
    let verified = fixture.verify(TOKEN).await.unwrap();
    let watched = fixture
        .verifier
        .hold(&verified, TOKEN)
        .unwrap()
        .watch()
        .unwrap();
    respond(&fixture, false);
    fixture.issuer.start_due_rechecks();
    settle().await;
    assert!(watched.latest().is_ok());
    assert!(fixture.verifier.drop_token(id()));
    fixture.issuer.start_due_rechecks();
    settle().await;
    assert_eq!(
        watched.latest().unwrap_err(),
        crate::RecheckFailure::Inactive
    );
}

/// E13: a token that is dropped while it is introspected is not cached.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_dropped_meanwhile_is_not_cached() {
    let (fixture, _) = sharing().await;
    let verifier = Arc::clone(&fixture.verifier);
    let introspected =
        tokio::spawn(async move { verifier.verify(&AccessToken::new(TOKEN)).await.is_ok() });
    while !fixture.verifier.drop_token(id()) {
        tokio::task::yield_now().await;
    }
    assert!(introspected.await.unwrap());
    assert_eq!(fixture.verifier.cached_tokens(), 0);
}

/// E13: all introspected tokens of an issuer can be dropped; those that were verified by signature
/// only stay.
#[tokio::test(start_paused = true)]
async fn introspected_tokens_are_dropped_together() {
    let (fixture, _) = sharing().await;
    fixture.verify(TOKEN).await.unwrap();
    fixture.issuer.drop_introspected_tokens();
    assert_eq!(fixture.verifier.sweep(), 1);
    let fixture = ready().await;
    fixture
        .verify(&fixture.test_issuer.token().sign())
        .await
        .unwrap();
    fixture.issuer.drop_introspected_tokens();
    assert_eq!(fixture.verifier.sweep(), 0);
    assert_eq!(fixture.verifier.cached_tokens(), 1);
}

/// Verifies the token in a task, and waits until its introspection runs.
async fn introspecting(
    fixture: &Fixture,
    running: usize,
) -> tokio::task::JoinHandle<Result<VerifiedToken, VerifyError>> {
    let verifier = Arc::clone(&fixture.verifier);
    let verifying = tokio::spawn(async move { verifier.verify(&AccessToken::new(TOKEN)).await });
    for _ in 0..10_000 {
        if fixture
            .fake
            .hits(fixture.test_issuer.endpoint("introspect"))
            >= running
        {
            return verifying;
        }
        tokio::task::yield_now().await;
    }
    panic!("the request has joined another introspection");
}

/// Lets the token be inactive from the second response on.
fn respond_active_once(fixture: &Fixture) {
    let responses = AtomicUsize::new(0);
    fixture
        .fake
        .respond(fixture.test_issuer.endpoint("introspect"), move |_| {
            let is_active = responses.fetch_add(1, Ordering::Relaxed) == 0;
            let response =
                json!({ "active": is_active, "aud": TestIssuer::RESOURCE, "sub": "alice" });
            Ok(FetchResponse {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: response.to_string().into(),
                sent: Default::default(),
            })
        });
}

/// A request that arrives after its token was dropped does not get the response to an introspection
/// that began before.
#[tokio::test(start_paused = true)]
async fn an_introspection_from_before_a_drop_is_not_joined() {
    for by_administrator in [true, false] {
        let (fixture, _) = sharing().await;
        let endpoint = fixture.test_issuer.endpoint("introspect");
        let earlier = fixture.fake.hits(&endpoint);
        respond_active_once(&fixture);
        let gate = fixture.fake.hang(&endpoint);
        let first = introspecting(&fixture, earlier + 1).await;
        if by_administrator {
            fixture.issuer.drop_cached_tokens();
        } else {
            assert!(fixture.verifier.drop_token(id()));
        }
        let second = introspecting(&fixture, earlier + 2).await;
        gate.release();
        assert!(first.await.unwrap().is_ok(), "it arrived before the drop");
        assert_eq!(second.await.unwrap().unwrap_err().code(), "token.inactive");
        assert_eq!(
            fixture.verifier.cached_tokens(),
            0,
            "by an administrator: {by_administrator}"
        );
    }
}

/// The same where another verifier has begun the introspection, for another resource or before a
/// reload: the verifiers share the calls of their issuer, but not what they know of its tokens.
#[tokio::test(start_paused = true)]
async fn an_introspection_by_another_verifier_from_before_a_drop_is_not_joined() {
    let (mut fixture, found) = sharing().await;
    let endpoint = fixture.test_issuer.endpoint("introspect");
    let earlier = fixture.fake.hits(&endpoint);
    respond_active_once(&fixture);
    let gate = fixture.fake.hang(&endpoint);
    let first = introspecting(&fixture, earlier + 1).await;
    fixture.verifier = reporting_verifier(&fixture, &found);
    fixture.verifier.drop_token(id());
    let second = introspecting(&fixture, earlier + 2).await;
    gate.release();
    assert!(first.await.unwrap().is_ok(), "it arrived before the drop");
    assert_eq!(second.await.unwrap().unwrap_err().code(), "token.inactive");
}

/// A token that is introspected again after a drop is cached, and the response from before the drop
/// is not.
#[tokio::test(start_paused = true)]
async fn only_the_later_introspection_is_cached() {
    let (fixture, _) = sharing().await;
    let endpoint = fixture.test_issuer.endpoint("introspect");
    let gate = fixture.fake.hang(&endpoint);
    let earlier = fixture.fake.hits(&endpoint);
    let first = introspecting(&fixture, earlier + 1).await;
    assert!(fixture.verifier.drop_token(id()));
    let second = introspecting(&fixture, earlier + 2).await;
    gate.release();
    assert!(first.await.unwrap().is_ok(), "it arrived before the drop");
    assert!(second.await.unwrap().is_ok());
    assert_eq!(fixture.verifier.cached_tokens(), 1);
}
