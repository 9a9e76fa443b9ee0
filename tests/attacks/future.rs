//! Tokens from the future.

use portcullis_scenarios::Site;

/// C7: `nbf` and `iat` are not in the future, give or take 10 s.
#[tokio::test]
async fn not_yet_valid() {
    let site = Site::start().await;
    site.assert_accepted("clocks differ a little", &site.token().not_before_in(5).issued_in(5).sign()).await;
    site.assert_refused([
        ("nbf", site.token().not_before_in(30).sign(), "token.not_yet_valid"),
        (
            "nbf far ahead",
            site.token().not_before_in(1_000_000_000).expires_in(2_000_000_000).sign(),
            "token.not_yet_valid",
        ),
        ("iat", site.token().issued_in(30).sign(), "token.issued_in_future"),
    ])
    .await;
}
