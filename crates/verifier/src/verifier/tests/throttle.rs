//! When an unknown token waits, while known ones are served on the same thread.

use std::{
    pin::pin,
    task::{Context, Waker},
};

use portcullis_metadata::UnixTime;

use super::*;

/// Each look at it takes a millisecond.
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

/// A verifier that has the keys, and known tokens to serve.
struct Served {
    forge: TestIssuer,
    verifier: Arc<Verifier>,
    known: String,
}

impl Served {
    async fn new() -> Self {
        let clock = SlowClock(ManualClock::new());
        let (forge, fake) = (TestIssuer::new(crate::testing::ISSUER).with_clock(clock.0.clone()), ScriptedFetch::new());
        fake.publish(&forge);
        let settings = IssuerSettings::new(forge.issuer().clone());
        let issuer = TrustedIssuer::new(settings, Arc::new(fake), Arc::new(clock.clone()), Handle::current()).unwrap();
        issuer.refresh_now().await.unwrap();
        let settings = VerifierSettings::new(ResourceUri::parse(TestIssuer::RESOURCE).unwrap());
        let verifier = Verifier::new(settings, vec![issuer], Arc::new(clock)).unwrap();
        let known = forge.token().sign();
        verifier.verify(&AccessToken::new(known.as_str())).await.unwrap();
        Self { forge, verifier, known }
    }

    fn unknown(&self) -> String {
        self.forge.token().subject("bob").sign()
    }

    /// Serves the known token, and says whether this one waits then.
    fn holds_up(&self, token: &str) -> bool {
        assert!(self.verifier.cached(&self.known).is_some(), "known tokens never wait");
        let token = AccessToken::new(token);
        let mut verification = pin!(self.verifier.verify(&token));
        verification.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    async fn refusal(&self, token: &str) -> Option<&'static str> {
        self.verifier.verify(&AccessToken::new(token)).await.err().map(|error| error.code())
    }
}

/// After an invalid signature unknown tokens wait, good ones too; they are verified when it is their turn.
#[tokio::test(start_paused = true)]
async fn an_invalid_signature_costs_a_turn() {
    let served = Served::new().await;
    let unknown = served.unknown();
    assert!(!served.holds_up(&flip_signature(&unknown)));
    assert!(served.holds_up(&unknown));
    assert_eq!(served.refusal(&unknown).await, None);
    assert!(served.verifier.cached(&unknown).is_some());
}

/// A token that is refused for what it says has cost as much.
#[tokio::test(start_paused = true)]
async fn an_expired_token_costs_a_turn() {
    let served = Served::new().await;
    assert!(!served.holds_up(&served.forge.token().expires_in(-60).sign()));
    assert!(served.holds_up(&served.unknown()));
}

/// Good tokens cost nobody a turn.
#[tokio::test(start_paused = true)]
async fn a_good_token_costs_nothing() {
    let served = Served::new().await;
    assert!(!served.holds_up(&served.unknown()));
    assert!(!served.holds_up(&served.forge.token().subject("carol").sign()));
}

/// A token whose key is not known takes no turn, and waits for none.
#[tokio::test(start_paused = true)]
async fn an_unknown_key_takes_no_turn() {
    let served = Served::new().await;
    let unknown_key = served.forge.token().kid("unknown").sign();
    assert_eq!(served.refusal(&unknown_key).await, Some("token.key_unknown"));
    assert!(!served.holds_up(&flip_signature(&served.unknown())));
    assert!(served.holds_up(&served.unknown()));
    assert!(!served.holds_up(&unknown_key));
}

/// Explaining a good token is no refusal.
#[tokio::test(start_paused = true)]
async fn an_explanation_costs_nothing() {
    let served = Served::new().await;
    let unknown = served.unknown();
    served.verifier.explain(&AccessToken::new(unknown.as_str())).await;
    assert!(!served.holds_up(&unknown));
}

/// When too many wait, the next one is told to come again: it may be good.
#[tokio::test(start_paused = true)]
async fn too_many_are_told_to_come_again() {
    let served = Served::new().await;
    let unknown = AccessToken::new(served.unknown());
    served.holds_up(&flip_signature(unknown.secret()));
    let mut waiting: Vec<_> = (0..1024).map(|_| Box::pin(served.verifier.verify(&unknown))).collect();
    for waiting in &mut waiting {
        served.verifier.cached(&served.known).unwrap();
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let error = served.verifier.verify(&unknown).await.unwrap_err();
    assert_eq!((error.code(), error.is_unavailable()), ("verifier.busy", true));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    drop(waiting);
    assert_eq!(served.verifier.verify(&unknown).await.map(drop), Ok(()));
}
