use portcullis_metadata::{Issuer, Secret};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};

use super::*;
use crate::ProviderKind;

const ISSUER: &str = "https://idp.example";

struct Fixture {
    network: ScriptedFetch,
    clock: ManualClock,
    test_issuer: TestIssuer,
    source: EndpointSource,
}

fn fixture() -> Fixture {
    let network = ScriptedFetch::new();
    let clock = ManualClock::new();
    let test_issuer = TestIssuer::new(ISSUER);
    network.publish(&test_issuer);
    let issuer = Issuer::parse(ISSUER).unwrap();
    let settings = ProviderSettings::new(
        "idp",
        ProviderKind::Oidc,
        issuer,
        "client",
        Secret::new("s"),
    );
    let discovered = DiscoveredEndpoints::new(
        &settings,
        Arc::new(network.clone()),
        Arc::new(clock.clone()),
    );
    let source = EndpointSource::Discovered(Box::new(discovered));
    Fixture {
        network,
        clock,
        test_issuer,
        source,
    }
}

impl Fixture {
    fn fetches(&self) -> usize {
        self.network.hits(self.test_issuer.metadata_url())
    }
}

/// Metadata is fetched once an hour, by one of the callers that need it at once.
#[tokio::test]
async fn metadata_is_fetched_once() {
    let fixture = fixture();
    let (first, second) = tokio::join!(fixture.source.get(), fixture.source.get());
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(fixture.fetches(), 1);
    fixture.clock.advance(MAX_AGE - Duration::from_secs(1));
    assert!(fixture.source.get().await.is_ok());
    assert_eq!(fixture.fetches(), 1);
    fixture.clock.advance(Duration::from_secs(1));
    assert!(fixture.source.get().await.is_ok());
    assert_eq!(fixture.fetches(), 2);
}

/// US2: old metadata is used while the provider is away, but not longer than a day.
#[tokio::test]
async fn stale_metadata_is_used_during_an_outage() {
    let fixture = fixture();
    assert!(fixture.source.get().await.is_ok());
    fixture.network.fail(fixture.test_issuer.metadata_url());
    fixture.clock.advance(MAX_AGE);
    for _ in 0..3 {
        assert!(fixture.source.get().await.is_ok());
    }
    // The failed fetch is not repeated at once.
    assert_eq!(fixture.fetches(), 2);
    fixture.clock.advance(MAX_STALE - MAX_AGE);
    assert!(fixture.source.get().await.is_err());
    fixture.network.publish(&fixture.test_issuer);
    assert!(fixture.source.get().await.is_err());
    fixture.clock.advance(COOLDOWN);
    assert!(fixture.source.get().await.is_ok());
}

/// PR9: a provider that does not answer is waited for at most 8 s, and does not block stale
/// metadata.
#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_is_given_up() {
    let fixture = fixture();
    let _gate = fixture.network.hang(fixture.test_issuer.metadata_url());
    let started = tokio::time::Instant::now();
    assert_eq!(
        fixture.source.get().await.unwrap_err(),
        ProviderError::Unreachable("fetch.timeout".into())
    );
    assert_eq!(started.elapsed(), FETCH_TIMEOUT);
}
