//! Tokens of other types with the right issuer and audience.

use portcullis_scenarios::Deployment;
use serde_json::json;

/// C4: recognizable tokens of other types are rejected.
#[tokio::test]
async fn tokens_of_other_types() {
    let deployment = Deployment::start().await;
    for typ in ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", "Application/JWT"] {
        deployment.assert_accepted(typ, &deployment.token().typ(typ).sign()).await;
    }
    deployment.assert_accepted("no typ", &deployment.token().without_header("typ").sign()).await;
    deployment.assert_accepted("only a nonce", &deployment.token().claim("nonce", "n").sign()).await;

    let headers = ["secevent+jwt", "logout+jwt", "dpop+jwt", "JOSE", "at+jwt ", "refresh+jwt", ""];
    deployment
        .assert_rejected(
            headers.map(|typ| (format!("typ {typ:?}"), deployment.token().typ(typ).sign(), "token.type_not_allowed")),
        )
        .await;
    let hashes = ["at_hash", "c_hash", "s_hash"];
    deployment
        .assert_rejected(
            hashes.map(|claim| (claim, deployment.token().claim(claim, "x").sign(), "token.not_an_access_token")),
        )
        .await;
    let types = ["ID", "Refresh", "Logout"];
    deployment
        .assert_rejected(
            types.map(|typ| (typ, deployment.token().claim("typ", typ).sign(), "token.not_an_access_token")),
        )
        .await;
    deployment
        .assert_rejected([(
            "events",
            deployment.token().claim("events", json!({})).sign(),
            "token.not_an_access_token",
        )])
        .await;
}

/// C4: `token_use` distinguishes the tokens of Amazon Cognito, which have the same issuer and keys.
#[tokio::test]
async fn tokens_of_another_use() {
    let deployment = Deployment::start().await;
    for token_use in ["access", "access_token"] {
        deployment.assert_accepted(token_use, &deployment.token().claim("token_use", token_use).sign()).await;
    }
    let uses = ["id", "id_token", "refresh", "refresh_token", "ACCESS", "accessory", ""];
    let token = |token_use: &str| deployment.token().claim("token_use", token_use).sign();
    deployment.assert_rejected(uses.map(|token_use| (token_use, token(token_use), "token.not_an_access_token"))).await;
}

/// C4: `at+jwt` can be required.
#[tokio::test]
async fn only_at_jwt() {
    let deployment = Deployment::builder().issuer("require_at_jwt = true").start().await;
    deployment.assert_accepted("at+jwt", &deployment.token().typ("at+jwt").sign()).await;
    deployment
        .assert_rejected([
            ("JWT", deployment.token().typ("JWT").sign(), "token.type_not_allowed"),
            ("none", deployment.token().without_header("typ").sign(), "token.type_not_allowed"),
        ])
        .await;
}

/// C13: a sender-constrained token is rejected as a bearer token, with any binding.
#[tokio::test]
async fn sender_constrained_tokens() {
    let deployment = Deployment::start().await;
    let bindings = [
        json!({ "jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" }),
        json!({ "x5t#S256": "A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0" }),
        json!({ "something": 1 }),
        json!({}),
    ];
    deployment
        .assert_rejected(
            bindings
                .map(|cnf| (cnf.to_string(), deployment.token().claim("cnf", cnf).sign(), "token.sender_constrained")),
        )
        .await;
}

/// C8: scopes are a string or an array, in `scope` or `scp`. A token with too few scopes gets 403.
#[tokio::test]
async fn scopes_in_every_form() {
    let deployment = Deployment::start().await;
    let token = deployment.test_issuer.token();
    deployment.assert_accepted("scope, a string", &token.clone().scope("other mcp:tools").sign()).await;
    deployment.assert_accepted("scope, an array", &token.clone().claim("scope", json!(["mcp:tools"])).sign()).await;
    deployment.assert_accepted("scp", &token.clone().claim("scp", json!(["other", "mcp:tools"])).sign()).await;

    let before = deployment.upstream.count();
    for (case, token) in [
        ("no scope", token.clone()),
        ("a prefix", token.clone().scope("mcp:tool mcp mcp:")),
        ("a suffix", token.clone().scope("mcp:tools2 mcp:tools.read")),
        ("another case", token.clone().scope("MCP:TOOLS")),
        ("another separator", token.clone().scope("a,mcp:tools")),
    ] {
        let response = deployment.try_token(&token.sign()).await;
        assert_eq!(response.status, 403, "{case}: {response:?}");
        assert_eq!(response.challenge("error"), Some("insufficient_scope"), "{case}");
        assert_eq!(response.challenge("scope"), Some("mcp:tools"), "{case}");
        deployment.portcullis.assert_denied(&response, "scope.insufficient").await;
    }
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");
}
