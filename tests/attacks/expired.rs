//! Tokens whose time is up.

use portcullis_scenarios::Site;
use serde_json::json;

/// C7: `exp` is required and in the future, give or take 10 s.
#[tokio::test]
async fn past_and_missing_expiry() {
    let site = Site::start().await;
    site.assert_accepted("just past, within the leeway", &site.token().expires_in(-5).sign()).await;
    site.assert_refused([
        ("past", site.token().expires_in(-11).sign(), "token.expired"),
        ("long past", site.token().expires_in(-86_400).sign(), "token.expired"),
        ("at the epoch", site.token().claim("exp", 0).sign(), "token.expired"),
        ("a fraction, past", site.token().claim("exp", json!(1_700_000_000.5)).sign(), "token.expired"),
        ("absent", site.token().without("exp").sign(), "token.expiry_missing"),
    ])
    .await;
}

/// C7: the leeway can be narrowed, and a longest lifetime be set.
#[tokio::test]
async fn narrower_rules() {
    let site = Site::builder().issuer("leeway = \"0s\"\nmax_lifetime = \"10m\"").start().await;
    site.assert_accepted("five minutes", &site.good_token()).await;
    site.assert_refused([
        ("just past", site.token().expires_in(-1).sign(), "token.expired"),
        ("too long", site.token().expires_in(601).sign(), "token.lifetime_too_long"),
        ("nobody knows how long", site.token().without("iat").sign(), "token.issued_at_missing"),
    ])
    .await;
}
