//! The authorization server, as far as the benchmark needs one: a key set and signed tokens.

use std::{fs, path::Path};

use portcullis_jose::Algorithm;
use portcullis_metadata::SystemClock;
use portcullis_testkit::TestIssuer;

/// An issuer whose keys come from a file.
pub(super) struct BenchIssuer(TestIssuer);

impl BenchIssuer {
    /// Creates an issuer of tokens for this resource.
    pub(super) fn new(issuer: &str, resource: &str, algorithm: Algorithm) -> Self {
        let issuer = TestIssuer::new(issuer)
            .with_resource(resource)
            .with_algorithm(algorithm);
        Self(issuer.with_clock(SystemClock::new()))
    }

    /// Writes `jwks.json` into the folder.
    pub(super) fn publish(&self, folder: &Path) -> anyhow::Result<()> {
        Ok(fs::write(folder.join("jwks.json"), self.0.jwks_json())?)
    }

    /// Signs a token that is valid for an hour. Tokens with other numbers differ.
    pub(super) fn sign(&self, number: Option<u32>) -> String {
        let token = self
            .0
            .token()
            .expires_in(3_600)
            .scope("openid profile mcp:tools")
            .subject("5f0d3b1c-7a52-4d0e-9c58-6a1f0c5e2b47")
            .claim("sid", "d2f5a0de-11f3-4c0c-8f5a-0b8e6a3c9d10")
            .claim("azp", "test-client")
            .claim("typ", "Bearer");
        match number {
            Some(number) => token.claim("jti", format!("{number:08}")).sign(),
            None => token.sign(),
        }
    }
}
