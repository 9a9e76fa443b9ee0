//! Critical extensions in the header of a token (RFC 7515 section 4.1.11, RFC 7797).

use portcullis_scenarios::Deployment;
use serde_json::json;

/// C2: `crit` and `b64` are rejected with any value.
#[tokio::test]
async fn extensions_are_rejected() {
    let deployment = Deployment::start().await;
    let token = deployment.token();
    let critical = [
        json!(["exp"]),
        json!(["b64"]),
        json!(["http://example.com/x"]),
        json!([]),
        json!(null),
        json!("b64"),
        json!({}),
    ];
    deployment
        .assert_rejected(
            critical.map(|crit| {
                (format!("crit {crit}"), token.clone().header("crit", crit).sign(), "token.header_extension")
            }),
        )
        .await;
    deployment
        .assert_rejected([true, false].map(|b64| {
            let token = token.clone().header("b64", b64);
            (format!("b64 {b64}"), token.sign(), "token.header_extension")
        }))
        .await;
    deployment
        .assert_rejected([(
            "crit and b64",
            token.header("crit", json!(["b64"])).header("b64", false).sign(),
            "token.header_extension",
        )])
        .await;
}
