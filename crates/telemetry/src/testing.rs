//! Verified tokens for tests.

use std::sync::Arc;

use portcullis_metadata::{AccessToken, JwkSet, ResourceUri};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use portcullis_verifier::{
    IssuerSettings, KeySource, TrustedIssuer, VerifiedToken, Verifier, VerifierSettings,
};
use tokio::runtime::{Builder, Runtime};

/// An issuer and a verifier of its tokens.
pub(crate) struct VerifierFixture {
    runtime: Runtime,
    issuer: TestIssuer,
    trusted: Arc<TrustedIssuer>,
}

impl VerifierFixture {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_current_thread().build().unwrap();
        let issuer = TestIssuer::new("https://issuer.example");
        let mut settings = IssuerSettings::new(issuer.issuer().clone());
        settings.keys = KeySource::Fixed(JwkSet::parse(issuer.jwks_json().as_bytes()).unwrap());
        let fetch = Arc::new(ScriptedFetch::new());
        let clock = Arc::new(ManualClock::new());
        let trusted = TrustedIssuer::new(settings, fetch, clock, runtime.handle().clone()).unwrap();
        Self {
            runtime,
            issuer,
            trusted,
        }
    }

    pub(crate) fn verified(&self, subject: &str, client: &str) -> VerifiedToken {
        let settings = VerifierSettings::new(resource(TestIssuer::RESOURCE));
        let verifier = Verifier::new(
            settings,
            vec![Arc::clone(&self.trusted)],
            Arc::new(ManualClock::new()),
        );
        let token = self
            .issuer
            .token()
            .subject(subject)
            .client_id(client)
            .sign();
        self.runtime
            .block_on(verifier.unwrap().verify(&AccessToken::new(token)))
            .unwrap()
    }
}

fn resource(text: &str) -> ResourceUri {
    ResourceUri::parse(text).unwrap()
}
