//! Scopes: required, by route, and by method and name.

use portcullis_scenarios::{INITIALIZE, Request, Site, call, modern_request};
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

/// B3, B9: one 403 names all that the operation needs, joined with what the token has of the resource's scopes.
#[tokio::test]
async fn too_few_scopes() {
    let site = Site::builder().resource(RULES).start().await;
    let tool = |name: &str, scopes: &str| {
        modern_request(Site::ENDPOINT, "tools/call", &json!({ "name": name, "arguments": {} }))
            .header("Mcp-Name", name)
            .bearer(&site.forge.token().scope(scopes).sign())
    };
    for (name, scopes) in [
        ("add", "mcp:tools"),
        ("admin_list", "mcp:tools mcp:admin"),
        ("file_delete", "mcp:delete mcp:tools other"),
        ("admin_delete", "mcp:tools mcp:delete mcp:admin"),
    ] {
        let answer = site.send(tool(name, scopes)).await;
        assert_eq!(answer.status, 200, "{name}, {scopes}: {answer:?}");
    }
    let before = site.upstream.count();
    let mut denied = Vec::new();
    for (name, scopes, needed) in [
        ("add", "", "mcp:tools"),
        ("add", "other", "mcp:tools"),
        ("add", "mcp:admin", "mcp:admin mcp:tools"),
        ("admin_list", "mcp:tools", "mcp:admin mcp:tools"),
        ("admin_list", "other", "mcp:admin mcp:tools"),
        ("admin_delete", "mcp:tools", "mcp:admin mcp:delete mcp:tools"),
        ("admin_delete", "mcp:tools mcp:admin other", "mcp:admin mcp:delete mcp:tools"),
    ] {
        let answer = site.send(tool(name, scopes)).await;
        assert_eq!(answer.status, 403, "{name}, {scopes}: {answer:?}");
        assert_eq!(answer.challenge("error"), Some("insufficient_scope"), "{answer:?}");
        assert_eq!(answer.challenge("resource_metadata"), Some(Site::METADATA_URL), "{answer:?}");
        let mut named: Vec<&str> = answer.challenge("scope").unwrap().split(' ').collect();
        named.sort_unstable();
        assert_eq!(named.join(" "), needed, "{name}, {scopes}: {answer:?}");
        denied.push((answer, "scope.insufficient"));
    }
    assert_eq!(site.upstream.count(), before, "a request reached the upstream");
    site.portcullis.assert_all_denied(&denied).await;
}

/// B3: expiry, audience and issuer are judged before scopes.
#[tokio::test]
async fn the_token_comes_first() {
    let site = Site::start().await;
    for token in [
        site.forge.token().expires_in(-60).sign(),
        site.forge.token().audience("https://elsewhere.example").sign(),
        site.forge.token().issuer("https://elsewhere.example").sign(),
    ] {
        assert_eq!(site.try_token(&token).await.assert_unauthorized(), Some("invalid_token"));
    }
}

/// B9: scopes can be asked for by HTTP method.
#[tokio::test]
async fn by_route() {
    let site = Site::builder().resource(RULES).start().await;
    let token = |scopes: &str| site.forge.token().scope(scopes).sign();
    let session = site.open_session(&token("mcp:tools")).await;
    let delete = |scopes: &str| Request::new("DELETE", Site::ENDPOINT).bearer(&token(scopes)).session(&session);
    let answer = site.send(delete("mcp:tools")).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.challenge("scope").unwrap().split(' ').any(|scope| scope == "mcp:end"), "{answer:?}");
    assert_eq!(site.send(delete("mcp:tools mcp:end")).await.status, 200);
}

/// B9: an initialize request and what follows in its session need the required scopes each.
#[tokio::test]
async fn in_a_session() {
    let site = Site::builder().resource(RULES).start().await;
    let token = |scopes: &str| site.forge.token().scope(scopes).sign();
    let answer = site.send(Request::post(Site::ENDPOINT, INITIALIZE).bearer(&token("mcp:admin"))).await;
    assert_eq!((answer.status, answer.count("mcp-session-id")), (403, 0), "{answer:?}");
    let session = site.open_session(&token("mcp:tools")).await;
    let post = |name: &str, scopes: &str| {
        let body = call(2, "tools/call", &json!({ "name": name }));
        Request::post(Site::ENDPOINT, body).bearer(&token(scopes)).session(&session)
    };
    assert_eq!(site.send(post("add", "mcp:tools")).await.status, 200);
    assert_eq!(site.send(post("admin_x", "mcp:tools")).await.status, 403);
    assert_eq!(site.send(post("add", "mcp:admin")).await.status, 403, "an older token's scopes do not count");
    assert_eq!(site.send(post("admin_x", "mcp:tools mcp:admin")).await.status, 200);
}
