//! Secrets in the file and in the environment are not printed.

use super::*;

/// J6: a literal secret is rejected and not printed. The message names environment and file as the
/// fix.
#[tokio::test]
async fn literal_secrets() {
    let literal = with("", "client_secret = \"hunter2\"", "");
    assert_neither_serves_nor_checks(
        "literal",
        &literal,
        &["client_secret", "{ env = \"NAME\" }", "{ file = "],
    )
    .await;
    let keys = with("", "", "[session]\nkeys = \"hunter2\"");
    assert_neither_serves_nor_checks(
        "in the place of a list",
        &keys,
        &["session.keys", "an array"],
    )
    .await;
    let elsewhere = with("", "client_secret = { value = \"hunter2\" }", "");
    assert_neither_serves_nor_checks(
        "in a table",
        &elsewhere,
        &["client_secret", "{ env = \"NAME\" }"],
    )
    .await;
    let broken = with("", "client_secret = \"hunter2", "");
    assert_neither_serves_nor_checks("in broken TOML", &broken, &["bad.toml"]).await;
}

/// J2: a URL with a secret is shown without it, even if it is not a valid URL.
#[tokio::test]
async fn secrets_in_urls() {
    let base_url = "base_url = \"me:hunter2@https://mcp.example.com\"";
    let words = ["base_url = \"…@https://mcp.example.com\"", "write it as"];
    assert_neither_serves_nor_checks("a user before the scheme", &with(base_url, "", ""), &words)
        .await;
    let jwks_uri = with(
        "",
        "jwks_uri = \"as.example/keys?token=hunter2&next=https://x\"",
        "",
    );
    assert_neither_serves_nor_checks(
        "a URL in a query",
        &jwks_uri,
        &["issuer[0].jwks_uri", "keys?…\""],
    )
    .await;
    let issuers = with(
        "",
        "",
        "issuers = [\"https://me:hunter2@auth.example.com\"]",
    );
    assert_neither_serves_nor_checks(
        "an unknown issuer",
        &issuers,
        &["issuers has", "https://…@auth"],
    )
    .await;
    for key in ["allowed_origins", "allowed_hosts"] {
        let listed = with(
            "",
            "",
            &format!("{key} = [\"https://me:hunter2@a.example/x?hunter2\"]"),
        );
        assert_neither_serves_nor_checks(key, &listed, &[key, "`https://…@a.example/x?…`"]).await;
    }
}

/// J6: a variable with a literal secret is rejected and not printed.
#[tokio::test]
async fn literal_secrets_in_the_environment() {
    let file = Scratch::file("good.toml", &with("", "", ""));
    let environment = [(
        "PORTCULLIS_ISSUER",
        "[{issuer=\"https://auth.example.com\",client_secret=\"hunter2\"}]",
    )];
    let finished = Portcullis::run_with(&["check", "--config", file.as_str()], &environment).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
    assert!(!finished.stdout.contains("hunter2"), "{finished:?}");
}
