//! The metadata document (RFC 9728): content, methods, caching and links to it.

use portcullis_scenarios::{Deployment, DeploymentBuilder, Request};
use serde_json::json;

const ROOT: &str = "/.well-known/oauth-protected-resource";

/// A1, A2, A3: the document is served without authentication at the path form and at the root form,
/// and does not depend on the `Host`.
#[tokio::test]
async fn the_document() {
    let settings = "scopes_supported = [\"mcp:tools\"]\nresource_name = \"Tools\"\nresource_documentation = \"https://docs.example/\"";
    let deployment = Deployment::builder().resource(settings).start().await;
    for path in [Deployment::METADATA_PATH, ROOT] {
        for host in ["127.0.0.1", "localhost:1234"] {
            let response = deployment
                .send(Request::without_host("GET", path).header("Host", host))
                .await;
            assert_eq!(response.status, 200, "{response:?}");
            assert_eq!(
                response.header("content-type"),
                Some("application/json"),
                "{response:?}"
            );
            assert_eq!(
                response.header("cache-control"),
                Some("public, max-age=300"),
                "{response:?}"
            );
            assert_eq!(
                response.json(),
                json!({
                    "resource": Deployment::RESOURCE,
                    "authorization_servers": ["https://issuer.example"],
                    "scopes_supported": ["mcp:tools"],
                    "bearer_methods_supported": ["header"],
                    "resource_name": "Tools",
                    "resource_documentation": "https://docs.example/",
                })
            );
        }
    }
    let plain = Deployment::builder().resource("").start().await;
    let response = plain.send(Request::new("GET", ROOT)).await;
    let expected = json!({
        "resource": Deployment::RESOURCE,
        "authorization_servers": ["https://issuer.example"],
        "bearer_methods_supported": ["header"],
    });
    assert_eq!(response.json(), expected, "without unset members");
}

/// A4: GET and HEAD; a known document is 304 without a body; other methods are 405 with `Allow`.
#[tokio::test]
async fn methods_and_caching() {
    let deployment = Deployment::start().await;
    for path in [Deployment::METADATA_PATH, ROOT] {
        let get = deployment.send(Request::new("GET", path)).await;
        let etag = get.header("etag").unwrap().to_owned();
        let head = deployment.send(Request::new("HEAD", path)).await;
        assert_eq!(head.status, 200, "{head:?}");
        for name in ["content-type", "content-length", "cache-control", "etag"] {
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
        for known in [
            etag.clone(),
            format!("W/{etag}"),
            format!("\"other\", {etag}"),
            "*".to_owned(),
        ] {
            for method in ["GET", "HEAD"] {
                let response = deployment
                    .send(Request::new(method, path).header("If-None-Match", &known))
                    .await;
                assert_eq!(response.status, 304, "{known}: {response:?}");
                assert_eq!(response.body.len(), 0, "{known}: {response:?}");
                assert_eq!(response.header("etag"), Some(etag.as_str()), "{response:?}");
            }
        }
        let response = deployment
            .send(Request::new("GET", path).header("If-None-Match", "\"other\""))
            .await;
        assert_eq!(response.status, 200);
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let response = deployment.send(Request::new(method, path)).await;
            assert_eq!(response.status, 405, "{method}: {response:?}");
            assert_eq!(
                response.header("allow"),
                Some("GET, HEAD"),
                "{method}: {response:?}"
            );
            assert_eq!(response.count("www-authenticate"), 0, "{response:?}");
        }
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// A4, F2: web pages can read the document, and preflights get a response.
#[tokio::test]
async fn web_pages_can_read_it() {
    let deployment = Deployment::start().await;
    let origin = "http://localhost:6274";
    let response = deployment
        .send(Request::new("GET", ROOT).header("Origin", origin))
        .await;
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some(origin),
        "{response:?}"
    );
    let preflight = Request::new("OPTIONS", ROOT)
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "GET")
        .header("Access-Control-Request-Headers", "mcp-protocol-version");
    let response = deployment.send(preflight).await;
    assert_eq!(response.status, 204, "{response:?}");
    assert_eq!(response.header("access-control-allow-origin"), Some(origin));
    assert_eq!(
        response.header("access-control-allow-methods"),
        Some("GET, HEAD")
    );
    assert_eq!(
        response.header("access-control-allow-headers"),
        Some("mcp-protocol-version")
    );
}

fn two_resources(second: &str) -> DeploymentBuilder {
    Deployment::builder().resource("").tables(format!(
        "[[resource]]\nendpoint = \"/other\"\nupstream = \"demo\"\n{second}"
    ))
}

/// A3: each of several resources has its path form; the root form belongs to the default one, or
/// does not exist.
#[tokio::test]
async fn several_resources() {
    let deployment = two_resources("").start().await;
    let resource = async |path: &str| {
        let response = deployment.send(Request::new("GET", path)).await;
        (response.status == 200).then(|| response.json()["resource"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        resource(Deployment::METADATA_PATH).await.as_deref(),
        Some(Deployment::RESOURCE)
    );
    assert_eq!(
        resource(&format!("{ROOT}/other")).await.as_deref(),
        Some("http://127.0.0.1:3000/other")
    );
    assert_eq!(resource(ROOT).await, None);

    let deployment = two_resources("default = true").start().await;
    let response = deployment.send(Request::new("GET", ROOT)).await;
    assert_eq!(response.json()["resource"], "http://127.0.0.1:3000/other");

    // A token for one of them is rejected by the other.
    let response = deployment
        .send(Request::post("/other", "{}").bearer(&deployment.good_token()))
        .await;
    assert_eq!(response.status, 401, "{response:?}");
    assert_eq!(response.challenge("error"), Some("invalid_token"));
    assert_eq!(
        response.challenge("resource_metadata"),
        Some("http://127.0.0.1:3000/.well-known/oauth-protected-resource/other")
    );
}

/// A6: the URL in the challenge always serves the document. For an endpoint at the root, it is the
/// root form.
#[tokio::test]
async fn the_challenge_points_to_it() {
    let deployment = Deployment::builder()
        .resource("")
        .tables("[[resource]]\nendpoint = \"/\"\nupstream = \"demo\"\ndefault = true")
        .start()
        .await;
    for (endpoint, path) in [
        ("/", ROOT),
        (Deployment::ENDPOINT, Deployment::METADATA_PATH),
    ] {
        let response = deployment.send(Request::post(endpoint, "{}")).await;
        let url = response.challenge("resource_metadata").unwrap().to_owned();
        assert_eq!(url, format!("http://127.0.0.1:3000{path}"));
        let response = deployment
            .send(Request::new(
                "GET",
                url.strip_prefix("http://127.0.0.1:3000").unwrap(),
            ))
            .await;
        assert_eq!(response.status, 200);
        let expected = format!("http://127.0.0.1:3000{endpoint}");
        assert_eq!(
            response.json()["resource"]
                .as_str()
                .unwrap()
                .trim_end_matches('/'),
            expected.trim_end_matches('/')
        );
    }
    let response = deployment
        .send(Request::new("GET", &format!("{ROOT}/")))
        .await;
    assert_eq!(response.status, 404, "{response:?}");
}
