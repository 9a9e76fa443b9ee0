//! Tokens with another audience, or with none.

use portcullis_scenarios::Deployment;
use serde_json::json;

/// C6: one entry must be the resource's URL, ignoring one trailing slash and ASCII letter case.
#[tokio::test]
async fn matching_audiences() {
    let deployment = Deployment::start().await;
    for audience in [
        json!(Deployment::RESOURCE),
        json!("http://127.0.0.1:3000/mcp/"),
        json!("HTTP://127.0.0.1:3000/MCP"),
        json!([Deployment::RESOURCE]),
        json!(["https://elsewhere.example/", "http://127.0.0.1:3000/Mcp/"]),
        json!([1, null, {}, Deployment::RESOURCE]),
    ] {
        deployment.assert_accepted(&audience.to_string(), &deployment.token().audience(audience).sign()).await;
    }
}

/// C6: similar URLs do not match.
#[tokio::test]
async fn other_audiences() {
    let deployment = Deployment::start().await;
    let others = [
        "api",
        "mcp",
        "*",
        "",
        "/",
        "/mcp",
        "127.0.0.1:3000/mcp",
        "http://127.0.0.1:3000",
        "http://127.0.0.1:3000/",
        "http://127.0.0.1:3000/mc",
        "http://127.0.0.1:3000/mcp2",
        "http://127.0.0.1:3000/mcp//",
        "http://127.0.0.1:3000/mcp/tools",
        "http://127.0.0.1:3000//mcp",
        "http://127.0.0.1:3000/./mcp",
        "http://127.0.0.1:3000/mcp?x=1",
        "http://127.0.0.1:3000/mcp#x",
        "http://127.0.0.1:3000/%6dcp",
        "https://127.0.0.1:3000/mcp",
        "http://127.0.0.1/mcp",
        "http://127.0.0.1:3001/mcp",
        "http://localhost:3000/mcp",
        "http://user@127.0.0.1:3000/mcp",
        "http://127.0.0.1:3000.attacker.example/mcp",
        "https://issuer.example",
        " http://127.0.0.1:3000/mcp",
        "http://127.0.0.1:3000/mcp ",
        "http://127.0.0.1:3000/mcp\u{0}",
        "http://127.0.0.1:3000/ⅿcp",
    ];
    let actual = format!("http://{}/mcp", deployment.portcullis.address());
    let texts = others.iter().copied().chain([actual.as_str()]).map(|text| json!(text));
    let arrays = [
        json!([]),
        json!(["api", "account"]),
        json!([[Deployment::RESOURCE]]),
        json!([{ "aud": Deployment::RESOURCE }]),
    ];
    deployment
        .assert_rejected(texts.chain(arrays).map(|audience| {
            let token = deployment.token().audience(audience.clone()).sign();
            (audience.to_string(), token, "token.audience_mismatch")
        }))
        .await;
}

/// C6: a token without an audience is rejected.
#[tokio::test]
async fn no_audience() {
    let deployment = Deployment::start().await;
    deployment.assert_rejected([("absent", deployment.token().without("aud").sign(), "token.audience_missing")]).await;
    let wrong_types = [json!(null), json!(1), json!(true), json!({ "aud": Deployment::RESOURCE })];
    deployment
        .assert_rejected(
            wrong_types
                .map(|audience| (audience.to_string(), deployment.token().audience(audience).sign(), "claims.type")),
        )
        .await;
}

/// C6: further URLs of the same resource can be configured and are compared by the same rule.
#[tokio::test]
async fn configured_audiences() {
    let deployment = Deployment::builder().issuer("audiences = [\"https://mcp.example.com/mcp\"]").start().await;
    let with = |audience: &str| deployment.token().audience(audience).sign();
    deployment.assert_accepted("the resource", &with(Deployment::RESOURCE)).await;
    deployment.assert_accepted("the listed one", &with("https://mcp.example.com/mcp/")).await;
    deployment
        .assert_rejected([
            ("a part of it", with("https://mcp.example.com/"), "token.audience_mismatch"),
            ("more than it", with("https://mcp.example.com/mcp/x"), "token.audience_mismatch"),
        ])
        .await;
}
