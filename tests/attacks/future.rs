//! Tokens from the future.

use portcullis_scenarios::Deployment;

/// C7: `nbf` and `iat` must not be in the future, with a leeway of 10 s.
#[tokio::test]
async fn not_yet_valid() {
    let deployment = Deployment::start().await;
    deployment
        .assert_accepted("clocks differ a little", &deployment.token().not_before_in(5).issued_in(5).sign())
        .await;
    deployment
        .assert_rejected([
            ("nbf", deployment.token().not_before_in(30).sign(), "token.not_yet_valid"),
            (
                "nbf far ahead",
                deployment.token().not_before_in(1_000_000_000).expires_in(2_000_000_000).sign(),
                "token.not_yet_valid",
            ),
            ("iat", deployment.token().issued_in(30).sign(), "token.issued_in_future"),
        ])
        .await;
}
