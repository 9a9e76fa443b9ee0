//! Tokens of other types with the right issuer and audience.

use std::sync::{Arc, Mutex};

use portcullis_scenarios::{Deployment, Upstream, modern_request};
use serde_json::{Value, json};

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

/// Returns the response to the introspection of an access token, with other members.
fn introspected(members: &Value) -> Value {
    let mut response = json!({ "active": true, "aud": Deployment::RESOURCE, "sub": "alice", "client_id": "editor", "scope": "mcp:tools" });
    response.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    response
}

/// C4, D2: refresh tokens and ID tokens are active, too. Their introspection responses do not admit them, and neither do they a signed
/// token. E7, K2: an empty subject or client is none.
#[tokio::test]
async fn introspected_tokens_of_another_use() {
    let response = Arc::new(Mutex::new(Value::Null));
    let current = Arc::clone(&response);
    let server = Upstream::scripted(move |request| {
        let is_probe = String::from_utf8_lossy(&request.body).contains("portcullis-probe-");
        let body = if is_probe { json!({ "active": false }) } else { current.lock().unwrap().clone() };
        Some(Upstream::response(200, &[("content-type", "application/json")], body.to_string()))
    })
    .await;
    for validate in ["introspection", "jwt+introspection"] {
        let is_signed = validate == "jwt+introspection";
        let settings = format!(
            "validate = \"{validate}\"\nclient_id = \"portcullis\"\nintrospection_endpoint = \"{}/introspect\"\n\
             introspection_cache = \"0s\"",
            server.origin()
        );
        let builder = if is_signed {
            Deployment::builder().issuer(settings)
        } else {
            Deployment::builder().tables(format!("[[issuer]]\nissuer = \"{}\"\n{settings}", server.origin()))
        };
        let deployment = builder.start().await;
        let token = if is_signed { deployment.good_token() } else { "opaque-token".to_owned() };
        let send = async |members: Value| {
            *response.lock().unwrap() = introspected(&members);
            let request = modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(&token);
            deployment.send(request).await
        };
        for token_use in ["access", "access_token"] {
            assert_eq!(send(json!({ "token_use": token_use })).await.status, 200, "{validate} {token_use}");
        }
        let before = deployment.upstream.count();
        for members in [
            json!({ "token_use": "refresh_token" }),
            json!({ "token_use": "refresh" }),
            json!({ "token_use": "id_token" }),
            json!({ "token_use": "" }),
            json!({ "token_type": "refresh_token" }),
            json!({ "typ": "Refresh" }),
            json!({ "at_hash": "x" }),
        ] {
            let rejected = send(members.clone()).await;
            assert_eq!(rejected.status, 401, "{validate} {members}: {rejected:?}");
            deployment.portcullis.assert_denied(&rejected, "token.not_an_access_token").await;
        }
        for wrong in [json!(["refresh"]), json!(1), Value::Null] {
            let rejected = send(json!({ "token_use": wrong })).await;
            assert_eq!(rejected.status, 401, "{validate} {wrong}: {rejected:?}");
        }
        assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");

        assert_eq!(send(json!({ "sub": "", "client_id": "" })).await.status, 200);
        let forwarded = deployment.upstream.last();
        let subject = is_signed.then_some("alice");
        assert_eq!(forwarded.header("x-portcullis-subject"), subject, "{forwarded:?}");
    }
}

/// E7: an empty subject or client of a signed token is none: it owns no sessions.
#[tokio::test]
async fn an_empty_subject_or_client_is_none() {
    let deployment = Deployment::builder().issuer("subjectless = \"client\"").start().await;
    let token = |client: &str| deployment.token().subject("").client_id(client).sign();
    let response = deployment.try_token(&token("")).await;
    assert_eq!(response.status, 403, "{response:?}");
    deployment.portcullis.assert_denied(&response, "session.no_owner").await;
    assert_eq!(deployment.upstream.count(), 0);
    assert_eq!(deployment.try_token(&token("editor")).await.status, 200, "its client owns the session");
    assert_eq!(deployment.upstream.last().header("x-portcullis-subject"), None);
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
