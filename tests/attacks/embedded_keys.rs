//! Tokens that contain their own key or the URL of one (RFC 8725 sections 3.1 and 3.10).

use portcullis_scenarios::{Deployment, Upstream};
use portcullis_testkit::TestIssuer;
use serde_json::json;

/// C2: `jwk`, `jku`, `x5u` and `x5c` are never used as keys, and their URLs are not fetched.
#[tokio::test]
async fn keys_in_the_header() {
    let deployment = Deployment::start().await;
    let key_server = Upstream::start().await;
    let url = format!("{}/jwks", key_server.origin());
    let attacker = TestIssuer::new("https://attacker.example");
    let forged = deployment.token().signed_by(attacker.key());
    let certificate = json!(["MIIBszCCAVmgAwIBAgIUAAAA"]);

    deployment
        .assert_rejected([
            ("jwk under the issuer's kid", deployment.token().self_signed(&attacker.key()), "token.signature"),
            (
                "jwk under its own kid",
                forged.clone().kid("mine").header("jwk", attacker.key().public_jwk()).sign(),
                "token.key_unknown",
            ),
            (
                "jwk without a kid",
                forged.clone().without_header("kid").header("jwk", attacker.key().public_jwk()).sign(),
                "token.signature",
            ),
            ("jku", forged.clone().header("jku", url.as_str()).sign(), "token.signature"),
            ("jku and another kid", forged.clone().kid("mine").header("jku", url.as_str()).sign(), "token.key_unknown"),
            ("x5u", forged.clone().header("x5u", url.as_str()).sign(), "token.signature"),
            ("x5c", forged.clone().header("x5c", certificate.clone()).sign(), "token.signature"),
            (
                "all of them",
                forged.header("jku", url.as_str()).header("x5u", url.as_str()).header("x5c", certificate).sign(),
                "token.signature",
            ),
        ])
        .await;
    assert_eq!(key_server.count(), 0, "a key was fetched from a URL in the token");
}

/// C2: with a valid signature, such members are ignored like unknown members, with any type.
#[tokio::test]
async fn embedded_keys_are_ignored() {
    let deployment = Deployment::start().await;
    let attacker = TestIssuer::new("https://attacker.example");
    deployment
        .assert_accepted("a foreign jwk", &deployment.token().header("jwk", attacker.key().public_jwk()).sign())
        .await;
    deployment.assert_accepted("a jku of another type", &deployment.token().header("jku", json!([1, {}])).sign()).await;
    deployment
        .assert_accepted("an unknown member", &deployment.token().header("unknown", json!({ "a": [null] })).sign())
        .await;
}
