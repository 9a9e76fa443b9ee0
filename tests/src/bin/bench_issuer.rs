//! The authorization server of `cargo xtask bench`, as far as it takes one: writes a key set, and a token for one
//! resource that is good for an hour.
//!
//! `bench_issuer ISSUER RESOURCE FOLDER` writes `jwks.json` and `token` into the folder.
#![allow(clippy::expect_used, reason = "a tool of the benchmark")]

use std::{env, fs, path::Path};

use portcullis_metadata::SystemClock;
use portcullis_testkit::Forge;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [issuer, resource, folder] = arguments.as_slice() else { panic!("usage: bench_issuer ISSUER RESOURCE FOLDER") };
    let forge = Forge::new(issuer).with_resource(resource).with_clock(SystemClock::new());
    let token = forge
        .token()
        .expires_in(3_600)
        .scope("openid profile mcp:tools")
        .subject("5f0d3b1c-7a52-4d0e-9c58-6a1f0c5e2b47")
        .claim("sid", "d2f5a0de-11f3-4c0c-8f5a-0b8e6a3c9d10")
        .claim("azp", "test-client")
        .claim("typ", "Bearer");
    let folder = Path::new(folder);
    fs::write(folder.join("jwks.json"), forge.jwks_json()).expect("the key set can be written");
    fs::write(folder.join("token"), token.sign()).expect("the token can be written");
}
