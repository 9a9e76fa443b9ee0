//! [`Introspection`]: streams whose token is introspected.

use portcullis_metadata::Clock;
use portcullis_testkit::TestIssuer;
use portcullis_verifier::{IntrospectionSettings, Validation};
use serde_json::{Value, json};

use super::{super::fixture::*, harness::Streams};

/// Streams, and the issuer's introspection endpoint.
pub(super) struct Introspection {
    pub(super) streams: Streams,
}

/// Returns the response about an active token of alice's without an expiration time.
pub(super) fn active() -> Value {
    json!({
        "active": true, "aud": TestIssuer::RESOURCE, "sub": "alice", "client_id": "test-client", "scope": "mcp:tools",
    })
}

impl Introspection {
    /// Opens a session with a token that is active for this time in seconds, or without an
    /// expiration time.
    pub(super) async fn new(lifetime: Option<u64>) -> Self {
        let fixture = Fixture::guarded_by(|issuer| {
            issuer.validation = Validation::Introspection(IntrospectionSettings::new("portcullis"));
        });
        fixture.fetch.publish(&fixture.test_issuer);
        let mut response = active();
        if let Some(lifetime) = lifetime {
            response["exp"] = json!(fixture.clock.now().as_secs() + lifetime);
        }
        respond(&fixture, &response);
        Self {
            streams: Streams::with_fixture(fixture).await,
        }
    }

    pub(super) fn set_response(&self, response: &Value) {
        respond(&self.streams.fixture, response);
    }

    /// Returns the time in seconds of Unix time.
    pub(super) fn now(&self) -> u64 {
        self.streams.fixture.clock.now().as_secs()
    }

    /// Lets these seconds pass, checks the tokens that are due, and returns how many streams the
    /// sweep has ended.
    pub(super) async fn recheck_after(&self, seconds: u64) -> usize {
        let fixture = &self.streams.fixture;
        fixture.clock.advance(SECOND * seconds.try_into().unwrap());
        let verifier = fixture.settings.resource.verifier().unwrap();
        verifier
            .issuers()
            .iter()
            .for_each(|issuer| issuer.start_due_rechecks());
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.streams.advance_and_sweep(0)
    }
}

fn respond(fixture: &Fixture, response: &Value) {
    let endpoint = fixture.test_issuer.endpoint("introspect");
    fixture.fetch.serve(endpoint, 200, response.to_string());
}
