//! The authorization server, as far as the benchmark needs one: a key set and a signed token.

use std::{fs, path::Path};

use portcullis_metadata::SystemClock;
use portcullis_testkit::TestIssuer;

/// Writes `jwks.json` into the folder, and returns a token for this resource that is valid for an hour.
pub(super) fn sign_token(issuer: &str, resource: &str, folder: &Path) -> anyhow::Result<String> {
    let test_issuer = TestIssuer::new(issuer).with_resource(resource).with_clock(SystemClock::new());
    fs::write(folder.join("jwks.json"), test_issuer.jwks_json())?;
    let token = test_issuer
        .token()
        .expires_in(3_600)
        .scope("openid profile mcp:tools")
        .subject("5f0d3b1c-7a52-4d0e-9c58-6a1f0c5e2b47")
        .claim("sid", "d2f5a0de-11f3-4c0c-8f5a-0b8e6a3c9d10")
        .claim("azp", "test-client")
        .claim("typ", "Bearer");
    Ok(token.sign())
}
