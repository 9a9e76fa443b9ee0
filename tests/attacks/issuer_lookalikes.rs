//! Issuers that resemble the trusted one.

use portcullis_scenarios::Deployment;
use serde_json::json;

/// C5: `iss` is compared byte for byte, without normalization.
#[tokio::test]
async fn similar_issuers() {
    let deployment = Deployment::start().await;
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
    deployment
        .assert_rejected(
            others.map(|issuer| (issuer, deployment.token().issuer(issuer).sign(), "token.issuer_unknown")),
        )
        .await;
}

/// C5: `iss` must be a string.
#[tokio::test]
async fn issuers_that_are_not_strings() {
    let deployment = Deployment::start().await;
    deployment
        .assert_rejected([
            ("absent", deployment.token().without("iss").sign(), "token.issuer_missing"),
            ("null", deployment.token().claim("iss", json!(null)).sign(), "token.issuer_missing"),
        ])
        .await;
    let wrong_types = [json!(["https://issuer.example"]), json!(1), json!({ "iss": "https://issuer.example" })];
    deployment
        .assert_rejected(
            wrong_types
                .map(|issuer| (issuer.to_string(), deployment.token().claim("iss", issuer).sign(), "claims.type")),
        )
        .await;
    for claim in ["sub", "client_id", "azp"] {
        let token = deployment.token().claim(claim, json!(["alice"])).sign();
        deployment.assert_rejected([(claim, token, "claims.type")]).await;
    }
    assert!(deployment.upstream.recorded().is_empty());
}
