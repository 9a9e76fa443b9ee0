//! The metadata document: its members, path, caching and methods.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::support::{METADATA_PATH, ROOT_PATH, Setup, With, request};

/// A1, A2: `resource` comes from the settings and not from the host. Optional members are present
/// only if they are set.
#[tokio::test]
async fn the_document_has_the_configured_members() {
    let mut setup = Setup::new();
    let bare = setup.send(request(Method::GET, METADATA_PATH)).await;
    assert_eq!(
        serde_json::from_str::<Value>(&bare.body).unwrap(),
        json!({
            "resource": "https://api.example.com/mcp",
            "authorization_servers": ["https://issuer.example"],
            "bearer_methods_supported": ["header"],
        })
    );

    setup.settings.metadata.scopes_supported = vec!["read".to_owned(), "write".to_owned()];
    setup.settings.metadata.resource_name = Some("Test".to_owned());
    setup
        .settings
        .metadata
        .extra
        .insert("resource_name#de".to_owned(), "Probe".into());
    setup.settings.metadata.bearer_methods_supported = Some(vec!["query".to_owned()]);
    let mut other_host = request(Method::GET, METADATA_PATH);
    other_host
        .headers_mut()
        .insert("host", "evil.example".parse().unwrap());
    let full = setup.send(other_host).await;
    assert_eq!(
        serde_json::from_str::<Value>(&full.body).unwrap(),
        json!({
            "resource": "https://api.example.com/mcp",
            "authorization_servers": ["https://issuer.example"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["read", "write"],
            "resource_name": "Test",
            "resource_name#de": "Probe",
        })
    );
}

/// A3: the document is served without a token at its path and, if configured, at the root path, and
/// nowhere else.
#[tokio::test]
async fn the_document_is_at_its_path() {
    let mut setup = Setup::new();
    for path in [
        METADATA_PATH,
        ROOT_PATH,
        "/.well-known/oauth-protected-resource/mcp?x=1",
    ] {
        assert_eq!(
            setup.send(request(Method::GET, path)).await.status,
            StatusCode::OK,
            "{path}"
        );
    }
    for path in [
        "/.well-known/oauth-protected-resource/mcp/",
        "/.well-known/oauth-protected-resource/MCP",
        "/mcp",
    ] {
        assert_eq!(
            setup.send(request(Method::GET, path)).await.status,
            StatusCode::UNAUTHORIZED,
            "{path}"
        );
    }
    setup.settings.root_metadata = false;
    assert_eq!(
        setup.send(request(Method::GET, METADATA_PATH)).await.status,
        StatusCode::OK
    );
    assert_eq!(
        setup.send(request(Method::GET, ROOT_PATH)).await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(setup.inner.count(), 0);
}

/// A3, A6: a resource at `/` has the document at the root path, and its challenge refers to it.
#[tokio::test]
async fn a_resource_at_the_root() {
    let mut setup = Setup::at("https://api.example.com/");
    setup.settings.root_metadata = false;
    assert_eq!(setup.resource().metadata_path(), ROOT_PATH);
    assert_eq!(
        setup.send(request(Method::GET, ROOT_PATH)).await.status,
        StatusCode::OK
    );
    let challenge = setup.send(request(Method::GET, "/")).await.challenge();
    assert_eq!(
        challenge.param("resource_metadata"),
        Some("https://api.example.com/.well-known/oauth-protected-resource")
    );
}

/// A6: the query of a resource is also that of the document's URL (RFC 9728 section 3.1).
#[tokio::test]
async fn a_resource_with_a_query() {
    let setup = Setup::at("https://api.example.com/a%20b?tenant=c");
    let challenge = setup
        .send(request(Method::GET, "/a%20b?tenant=c"))
        .await
        .challenge();
    let expected = "https://api.example.com/.well-known/oauth-protected-resource/a%20b?tenant=c";
    assert_eq!(challenge.param("resource_metadata"), Some(expected));
    let path = setup.resource().metadata_path().to_owned();
    assert_eq!(
        setup.send(request(Method::GET, &path)).await.status,
        StatusCode::OK
    );
}

/// A6: the challenge refers to the URL that serves the document.
#[tokio::test]
async fn the_challenge_refers_to_the_document() {
    let setup = Setup::new();
    let challenge = setup.send(request(Method::POST, "/mcp")).await.challenge();
    let url = url::Url::parse(challenge.param("resource_metadata").unwrap()).unwrap();
    assert_eq!(url.path(), METADATA_PATH);
    let document = setup.send(request(Method::GET, url.path())).await;
    let document: Value = serde_json::from_str(&document.body).unwrap();
    assert_eq!(document["resource"], "https://api.example.com/mcp");
}

/// A4: GET and HEAD respond with type, caching and CORS headers. A matching `If-None-Match` gets
/// 304.
#[tokio::test]
async fn get_and_head() {
    let setup = Setup::new();
    let get = setup.send(request(Method::GET, METADATA_PATH)).await;
    assert_eq!(get.header("content-type"), Some("application/json"));
    assert_eq!(get.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(get.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        get.header("content-length"),
        Some(get.body.len().to_string().as_str())
    );

    let etag = get.header("etag").unwrap().to_owned();
    assert!(etag.starts_with('"'));
    assert!(etag.ends_with('"'));
    assert_eq!(etag.len(), 34);

    let head = setup.send(request(Method::HEAD, METADATA_PATH)).await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.body.as_str(), "");
    for name in [
        "content-type",
        "content-length",
        "etag",
        "cache-control",
        "access-control-allow-origin",
    ] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    for known in [
        etag.clone(),
        format!("W/{etag}"),
        "*".to_owned(),
        format!("\"other\", {etag}"),
    ] {
        let answer = setup
            .send(request(Method::GET, METADATA_PATH).with("if-none-match", &known))
            .await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(answer.body.as_str(), "", "{known}");
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
        assert_eq!(answer.header("cache-control"), get.header("cache-control"));
    }
    for unknown in ["\"other\"", "", "rubbish", &etag[1..]] {
        let answer = setup
            .send(request(Method::GET, METADATA_PATH).with("if-none-match", unknown))
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{unknown}");
    }
}

/// A4: equal documents have equal entity tags, and different ones different tags.
#[tokio::test]
async fn the_entity_tag_depends_on_the_document() {
    let mut setup = Setup::new();
    let tag = |answer: super::support::Answer| answer.header("etag").unwrap().to_owned();
    let before = tag(setup.send(request(Method::GET, METADATA_PATH)).await);
    assert_eq!(
        tag(setup.send(request(Method::GET, ROOT_PATH)).await),
        before
    );
    setup.settings.metadata.scopes_supported = vec!["read".to_owned()];
    assert_ne!(
        tag(setup.send(request(Method::GET, METADATA_PATH)).await),
        before
    );
}

/// A4: other methods get 405 with `Allow`, even with a valid token.
#[tokio::test]
async fn other_methods_are_rejected() {
    let setup = Setup::new();
    let token = setup.token("");
    for method in [
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
        Method::from_bytes(b"X").unwrap(),
    ] {
        let answer = setup
            .send(request(method.clone(), METADATA_PATH).bearer(&token))
            .await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    assert_eq!(setup.inner.count(), 0);
}

/// A4: a page of another origin can read the document, also with a preflight.
#[tokio::test]
async fn preflight_for_the_document() {
    let setup = Setup::new();
    let preflight = request(Method::OPTIONS, METADATA_PATH)
        .with("origin", "https://app.example")
        .with("access-control-request-method", "GET")
        .with("access-control-request-headers", "mcp-protocol-version");
    let answer = setup.send(preflight).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET, HEAD")
    );
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("mcp-protocol-version")
    );
}
