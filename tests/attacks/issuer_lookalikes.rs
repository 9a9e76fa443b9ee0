//! Issuers that look like the trusted one.

use portcullis_scenarios::Site;
use serde_json::json;

/// C5: `iss` is compared byte for byte: no normalization makes two issuers one.
#[tokio::test]
async fn issuers_that_are_not_ours() {
    let site = Site::start().await;
    let others = [
        "https://issuer.example/",
        "https://ISSUER.example",
        "HTTPS://issuer.example",
        "http://issuer.example",
        "https://issuer.example:443",
        "https://issuer.example.",
        "https://issuer.example/realms/other",
        "https://issuer.example?",
        "https://issuer.example#",
        "https://user@issuer.example",
        "https://issuer.example@attacker.example",
        "https://issuer.example.attacker.example",
        "https://issuer.exampl",
        "https://іssuer.example",
        "https://xn--ssuer-example",
        " https://issuer.example",
        "https://issuer.example ",
        "https://issuer.example\u{0}",
        "issuer.example",
        "",
    ];
    site.assert_refused(others.map(|issuer| (issuer, site.token().issuer(issuer).sign(), "token.issuer_unknown")))
        .await;
}

/// C5: `iss` is one text.
#[tokio::test]
async fn issuers_that_are_no_text() {
    let site = Site::start().await;
    site.assert_refused([
        ("absent", site.token().without("iss").sign(), "token.issuer_missing"),
        ("null", site.token().claim("iss", json!(null)).sign(), "token.issuer_missing"),
    ])
    .await;
    let no_texts = [json!(["https://issuer.example"]), json!(1), json!({ "iss": "https://issuer.example" })];
    site.assert_refused(
        no_texts.map(|issuer| (issuer.to_string(), site.token().claim("iss", issuer).sign(), "claims.type")),
    )
    .await;
    for claim in ["sub", "client_id", "azp"] {
        let token = site.token().claim(claim, json!(["alice"])).sign();
        site.assert_refused([(claim, token, "claims.type")]).await;
    }
    assert!(site.upstream.recorded().is_empty());
}
