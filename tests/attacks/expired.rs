//! Expired tokens, and tokens with a longer lifetime than allowed, are rejected.

use portcullis_scenarios::Deployment;
use serde_json::json;

/// C7: `exp` is required and must be in the future, with a leeway of 10 s.
#[tokio::test]
async fn past_and_missing_expiry() {
    let deployment = Deployment::start().await;
    deployment.assert_accepted("just past, within the leeway", &deployment.token().expires_in(-5).sign()).await;
    deployment
        .assert_rejected([
            ("past", deployment.token().expires_in(-11).sign(), "token.expired"),
            ("long past", deployment.token().expires_in(-86_400).sign(), "token.expired"),
            ("at the epoch", deployment.token().claim("exp", 0).sign(), "token.expired"),
            ("a fraction, past", deployment.token().claim("exp", json!(1_700_000_000.5)).sign(), "token.expired"),
            ("absent", deployment.token().without("exp").sign(), "token.expiry_missing"),
        ])
        .await;
}

/// C7: a smaller leeway and a maximum lifetime can be configured.
#[tokio::test]
async fn narrower_rules() {
    let deployment = Deployment::builder().issuer("leeway = \"0s\"\nmax_lifetime = \"10m\"").start().await;
    deployment.assert_accepted("five minutes", &deployment.good_token()).await;
    deployment
        .assert_rejected([
            ("just past", deployment.token().expires_in(-1).sign(), "token.expired"),
            ("too long", deployment.token().expires_in(601).sign(), "token.lifetime_too_long"),
            ("unknown lifetime", deployment.token().without("iat").sign(), "token.issued_at_missing"),
        ])
        .await;
}
