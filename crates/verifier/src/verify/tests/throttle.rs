//! The throttle of invalid tokens.

use std::{
    pin::pin,
    task::{Context, Waker},
};

use portcullis_metadata::UnixTime;

use super::*;

/// A clock that advances by a millisecond at each reading.
#[derive(Clone)]
struct SlowClock(ManualClock);

impl Clock for SlowClock {
    fn now(&self) -> UnixTime {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.advance(Duration::from_millis(1));
        self.0.monotonic()
    }
}

/// A verifier with keys and a cached token.
struct Served {
    test_issuer: TestIssuer,
    verifier: Arc<Verifier>,
    known: String,
}

impl Served {
    async fn new() -> Self {
        let clock = SlowClock(ManualClock::new());
        let test_issuer = TestIssuer::new(crate::testing::ISSUER).with_clock(clock.0.clone());
        let fake = ScriptedFetch::new();
        fake.publish(&test_issuer);
        let settings = IssuerSettings::new(test_issuer.issuer().clone());
        let issuer = TrustedIssuer::new(
            settings,
            Arc::new(fake),
            Arc::new(clock.clone()),
            Handle::current(),
        )
        .unwrap();
        issuer.refresh_now().await.unwrap();
        let settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        let verifier = Verifier::new(settings, vec![issuer], Arc::new(clock)).unwrap();
        let known = test_issuer.token().sign();
        verifier
            .verify(&AccessToken::new(known.as_str()))
            .await
            .unwrap();
        Self {
            test_issuer,
            verifier,
            known,
        }
    }

    fn unknown(&self) -> String {
        self.test_issuer.token().subject("bob").sign()
    }

    /// Serves the cached token and returns whether another token then waits.
    fn delays_others(&self, token: &str) -> bool {
        assert!(
            self.verifier.cached(&self.known).is_some(),
            "known tokens never wait"
        );
        let token = AccessToken::new(token);
        let mut verification = pin!(self.verifier.verify(&token));
        verification
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    }

    async fn rejection(&self, token: &str) -> Option<&'static str> {
        self.verifier
            .verify(&AccessToken::new(token))
            .await
            .err()
            .map(|error| error.code())
    }
}

/// After an invalid signature, uncached tokens wait while cached tokens are served.
#[tokio::test(start_paused = true)]
async fn an_invalid_signature_is_charged() {
    let served = Served::new().await;
    let unknown = served.unknown();
    assert!(!served.delays_others(&flip_signature(&unknown)));
    assert!(served.delays_others(&unknown));
    assert_eq!(served.rejection(&unknown).await, None);
    assert!(served.verifier.cached(&unknown).is_some());
}

/// A token with a valid signature and invalid claims is charged, too.
#[tokio::test(start_paused = true)]
async fn an_expired_token_is_charged() {
    let served = Served::new().await;
    assert!(!served.delays_others(&served.test_issuer.token().expires_in(-60).sign()));
    assert!(served.delays_others(&served.unknown()));
}

/// Valid tokens are not charged.
#[tokio::test(start_paused = true)]
async fn a_valid_token_is_not_charged() {
    let served = Served::new().await;
    assert!(!served.delays_others(&served.unknown()));
    assert!(!served.delays_others(&served.test_issuer.token().subject("carol").sign()));
}

/// A token with an unknown key is not charged and does not wait.
#[tokio::test(start_paused = true)]
async fn an_unknown_key_is_not_charged() {
    let served = Served::new().await;
    let unknown_key = served.test_issuer.token().kid("unknown").sign();
    assert_eq!(
        served.rejection(&unknown_key).await,
        Some("token.key_unknown")
    );
    assert!(!served.delays_others(&flip_signature(&served.unknown())));
    assert!(served.delays_others(&served.unknown()));
    assert!(!served.delays_others(&unknown_key));
}

/// `explain` does not charge a valid token.
#[tokio::test(start_paused = true)]
async fn an_explanation_is_not_charged() {
    let served = Served::new().await;
    let unknown = served.unknown();
    served
        .verifier
        .explain(&AccessToken::new(unknown.as_str()))
        .await;
    assert!(!served.delays_others(&unknown));
}

/// If too many tokens wait, the next one fails with a `retry_after`.
#[tokio::test(start_paused = true)]
async fn too_many_waiting_tokens_are_busy() {
    let served = Served::new().await;
    let unknown = AccessToken::new(served.unknown());
    served.delays_others(&flip_signature(unknown.secret()));
    let mut waiting: Vec<_> = (0..1024)
        .map(|_| Box::pin(served.verifier.verify(&unknown)))
        .collect();
    for waiting in &mut waiting {
        served.verifier.cached(&served.known).unwrap();
        assert!(
            waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    let error = served.verifier.verify(&unknown).await.unwrap_err();
    assert_eq!(error.code(), "verifier.busy");
    assert!(error.is_unavailable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));

    drop(waiting);
    assert_eq!(served.verifier.verify(&unknown).await.map(drop), Ok(()));
}
