//! Scopes that requests need, by resource, route, method and name, and the claims and forms of
//! names in which tokens have them.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, call_message, modern_request};
use serde_json::json;

const RULES: &str = r#"
required_scopes = ["mcp:tools"]
scopes_supported = ["mcp:tools", "mcp:admin", "mcp:delete"]

[[resource.rule]]
method = "tools/call"
name = "admin_*"
scopes = ["mcp:admin"]

[[resource.rule]]
method = "tools/call"
name = "*_delete"
scopes = ["mcp:delete"]

[[resource.route]]
methods = ["DELETE"]
path = "/mcp"
scopes = ["mcp:end"]
"#;

/// B3, B9: one 403 names all scopes that the operation needs, and those of the resource that the
/// token has.
#[tokio::test]
async fn too_few_scopes() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let tool = |name: &str, scopes: &str| {
        modern_request(
            Deployment::ENDPOINT,
            "tools/call",
            &json!({ "name": name, "arguments": {} }),
        )
        .header("Mcp-Name", name)
        .bearer(&deployment.test_issuer.token().scope(scopes).sign())
    };
    for (name, scopes) in [
        ("add", "mcp:tools"),
        ("admin_list", "mcp:tools mcp:admin"),
        ("file_delete", "mcp:delete mcp:tools other"),
        ("admin_delete", "mcp:tools mcp:delete mcp:admin"),
    ] {
        let response = deployment.send(tool(name, scopes)).await;
        assert_eq!(response.status, 200, "{name}, {scopes}: {response:?}");
    }
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for (name, scopes, needed) in [
        ("add", "", "mcp:tools"),
        ("add", "other", "mcp:tools"),
        ("add", "mcp:admin", "mcp:admin mcp:tools"),
        ("admin_list", "mcp:tools", "mcp:admin mcp:tools"),
        ("admin_list", "other", "mcp:admin mcp:tools"),
        (
            "admin_delete",
            "mcp:tools",
            "mcp:admin mcp:delete mcp:tools",
        ),
        (
            "admin_delete",
            "mcp:tools mcp:admin other",
            "mcp:admin mcp:delete mcp:tools",
        ),
    ] {
        let response = deployment.send(tool(name, scopes)).await;
        assert_eq!(response.status, 403, "{name}, {scopes}: {response:?}");
        assert_eq!(
            response.challenge("error"),
            Some("insufficient_scope"),
            "{response:?}"
        );
        assert_eq!(
            response.challenge("resource_metadata"),
            Some(Deployment::METADATA_URL),
            "{response:?}"
        );
        let mut named: Vec<&str> = response.challenge("scope").unwrap().split(' ').collect();
        named.sort_unstable();
        assert_eq!(named.join(" "), needed, "{name}, {scopes}: {response:?}");
        denied.push((response, "scope.insufficient"));
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// B3: expiry, audience and issuer are checked before scopes.
#[tokio::test]
async fn the_token_comes_first() {
    let deployment = Deployment::start().await;
    for token in [
        deployment.test_issuer.token().expires_in(-60).sign(),
        deployment
            .test_issuer
            .token()
            .audience("https://elsewhere.example")
            .sign(),
        deployment
            .test_issuer
            .token()
            .issuer("https://elsewhere.example")
            .sign(),
    ] {
        assert_eq!(
            deployment.try_token(&token).await.assert_unauthorized(),
            Some("invalid_token")
        );
    }
}

/// B9: scopes can be required by HTTP method.
#[tokio::test]
async fn by_route() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let token = |scopes: &str| deployment.test_issuer.token().scope(scopes).sign();
    let session = deployment.open_session(&token("mcp:tools")).await;
    let delete = |scopes: &str| Request::delete(Deployment::ENDPOINT, &token(scopes), &session);
    let response = deployment.send(delete("mcp:tools")).await;
    assert_eq!(response.status, 403, "{response:?}");
    assert!(
        response
            .challenge("scope")
            .unwrap()
            .split(' ')
            .any(|scope| scope == "mcp:end"),
        "{response:?}"
    );
    assert_eq!(
        deployment.send(delete("mcp:tools mcp:end")).await.status,
        200
    );
}

/// B9: an `initialize` request and each later request in its session need the required scopes.
#[tokio::test]
async fn in_a_session() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let token = |scopes: &str| deployment.test_issuer.token().scope(scopes).sign();
    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token("mcp:admin")))
        .await;
    assert_eq!(response.status, 403, "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");

    let session = deployment.open_session(&token("mcp:tools")).await;
    let post = |name: &str, scopes: &str| {
        let body = call_message(2, "tools/call", &json!({ "name": name }));
        Request::post(Deployment::ENDPOINT, body)
            .bearer(&token(scopes))
            .session(&session)
    };
    assert_eq!(deployment.send(post("add", "mcp:tools")).await.status, 200);
    assert_eq!(
        deployment.send(post("admin_x", "mcp:tools")).await.status,
        403
    );
    assert_eq!(
        deployment.send(post("add", "mcp:admin")).await.status,
        403,
        "an older token's scopes do not count"
    );
    assert_eq!(
        deployment
            .send(post("admin_x", "mcp:tools mcp:admin"))
            .await
            .status,
        200
    );
}

/// C8: an issuer's `scope_claims` count as scopes. A value that is not a scope name is ignored and
/// not split.
#[tokio::test]
async fn scopes_of_other_claims() {
    let deployment = Deployment::builder()
        .issuer("scope_claims = [\"permissions\", \"/realm_access/roles\"]")
        .start()
        .await;
    let token = || deployment.test_issuer.token();
    for (case, token) in [
        (
            "a name",
            token().claim("permissions", json!(["other", "mcp:tools"])),
        ),
        ("a string", token().claim("permissions", "mcp:tools")),
        (
            "a pointer",
            token().claim("realm_access", json!({ "roles": ["mcp:tools"] })),
        ),
        (
            "beside a bad value",
            token().claim("permissions", json!([7, "a b", "mcp:tools"])),
        ),
    ] {
        deployment.assert_accepted(case, &token.sign()).await;
    }
    for (case, token) in [
        (
            "a list in a string",
            token().claim("permissions", "other mcp:tools"),
        ),
        (
            "a list in an entry",
            token().claim("permissions", json!(["not mcp:tools"])),
        ),
        (
            "another claim",
            token().claim("roles", json!(["mcp:tools"])),
        ),
        (
            "another place",
            token().claim("permissions", json!({ "mcp:tools": true })),
        ),
    ] {
        let response = deployment.try_token(&token.sign()).await;
        assert_eq!(response.status, 403, "{case}: {response:?}");
        deployment
            .portcullis
            .assert_denied(&response, "scope.insufficient")
            .await;
    }
}

/// B3: `serve` challenges with the form of a scope that clients must request, and accepts tokens
/// with the short form.
#[tokio::test]
async fn a_challenge_names_the_listed_form() {
    const LISTED: &str = "api://11112222-bbbb/mcp:tools";
    let lines = format!("scopes_supported = [\"{LISTED}\"]\nrequired_scopes = [\"mcp:tools\"]");
    let deployment = Deployment::builder().resource(lines).start().await;
    for (token, status) in [
        (None, 401),
        (Some(deployment.token().scope("other").sign()), 403),
    ] {
        let mut post = Request::post(Deployment::ENDPOINT, INITIALIZE);
        if let Some(token) = &token {
            post = post.bearer(token);
        }
        let answer = deployment.send(post).await;
        assert_eq!(answer.status, status, "{answer:?}");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.contains(&format!("scope=\"{LISTED}\"")),
            "{challenge}"
        );
    }
    deployment.open_session(&deployment.good_token()).await;
}

/// C8: scopes are a string or an array, in `scope` or `scp`. A token with too few scopes gets 403.
#[tokio::test]
async fn scopes_in_every_form() {
    let deployment = Deployment::start().await;
    let token = deployment.test_issuer.token();
    deployment
        .assert_accepted(
            "scope, a string",
            &token.clone().scope("other mcp:tools").sign(),
        )
        .await;
    deployment
        .assert_accepted(
            "scope, an array",
            &token.clone().claim("scope", json!(["mcp:tools"])).sign(),
        )
        .await;
    deployment
        .assert_accepted(
            "scp",
            &token
                .clone()
                .claim("scp", json!(["other", "mcp:tools"]))
                .sign(),
        )
        .await;

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
        assert_eq!(
            response.challenge("error"),
            Some("insufficient_scope"),
            "{case}"
        );
        assert_eq!(response.challenge("scope"), Some("mcp:tools"), "{case}");
        deployment
            .portcullis
            .assert_denied(&response, "scope.insufficient")
            .await;
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}
