//! DNS rebinding: requests of web pages whose host name resolves to this machine.

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

const LOOPBACK: &[&str] = &[
    "127.0.0.1",
    "127.0.0.1:3000",
    "127.0.0.1:1",
    "localhost",
    "LocalHost:5173",
    "[::1]",
    "[::1]:8080",
    "127.9.9.9",
    "app.localhost",
];
const FOREIGN: &[&str] = &[
    "attacker.example",
    "attacker.example:3000",
    "127.0.0.1.attacker.example",
    "localhost.attacker.example",
    "attacker-localhost",
    "0.0.0.0",
    "0.0.0.0:3000",
    "[::]",
    "[::ffff:10.0.0.1]",
    "10.0.0.1",
    "192.168.0.1:3000",
    "169.254.169.254",
    "1.0.0.127",
    "localhost.",
];

/// Methods and paths that all check `Host` and `Origin`.
fn targets() -> [(&'static str, &'static str); 6] {
    [
        ("POST", Deployment::ENDPOINT),
        ("OPTIONS", Deployment::ENDPOINT),
        ("GET", Deployment::METADATA_PATH),
        ("GET", "/.well-known/oauth-protected-resource"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
    ]
}

/// F3: with a loopback base URL, only loopback hosts are accepted, on every path and for every
/// method.
#[tokio::test]
async fn hosts() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    for host in LOOPBACK {
        let request = Request::without_host("POST", Deployment::ENDPOINT)
            .header("Host", host)
            .header("Content-Type", "application/json")
            .bearer(&good)
            .body(INITIALIZE);
        assert_eq!(
            deployment.send_as_new_client(request).await.status,
            200,
            "{host}"
        );
    }
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for host in FOREIGN {
        for (method, target) in targets() {
            let response = deployment
                .send_as_new_client(
                    Request::without_host(method, target)
                        .header("Host", host)
                        .bearer(&good),
                )
                .await;
            assert_eq!(
                response.status, 403,
                "{method} {target}, {host}: {response:?}"
            );
            assert_eq!(
                response.count("www-authenticate"),
                0,
                "{host}: {response:?}"
            );
            assert_eq!(
                response.count("access-control-allow-origin"),
                0,
                "{host}: {response:?}"
            );
            denied.push((response, "host.not_allowed"));
        }
    }
    for (case, request, code) in [
        (
            "none",
            Request::without_host("POST", Deployment::ENDPOINT),
            "host.missing",
        ),
        (
            "two",
            Request::new("POST", Deployment::ENDPOINT).header("Host", "127.0.0.1"),
            "host.repeated",
        ),
        (
            "a list",
            Request::without_host("POST", Deployment::ENDPOINT).header("Host", "127.0.0.1, x"),
            "host.malformed",
        ),
        (
            "user information",
            Request::without_host("POST", Deployment::ENDPOINT).header("Host", "x@127.0.0.1"),
            "host.malformed",
        ),
        (
            "a path",
            Request::without_host("POST", Deployment::ENDPOINT).header("Host", "127.0.0.1/x"),
            "host.malformed",
        ),
        (
            "an invalid port",
            Request::without_host("POST", Deployment::ENDPOINT).header("Host", "127.0.0.1:x"),
            "host.malformed",
        ),
        (
            "empty",
            Request::without_host("POST", Deployment::ENDPOINT).header("Host", ""),
            "host.malformed",
        ),
    ] {
        let response = deployment.send_as_new_client(request.bearer(&good)).await;
        assert_eq!(response.status, 400, "{case}: {response:?}");
        denied.push((response, code));
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// F3: with a loopback base URL, only loopback origins are accepted, on any port.
#[tokio::test]
async fn origins() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    for origin in [
        "http://127.0.0.1:3000",
        "http://localhost:5173",
        "https://localhost",
        "http://[::1]:9",
    ] {
        let response = deployment
            .send_as_new_client(
                Request::post(Deployment::ENDPOINT, INITIALIZE)
                    .bearer(&good)
                    .header("Origin", origin),
            )
            .await;
        assert_eq!(response.status, 200, "{origin}: {response:?}");
        assert_eq!(response.header("access-control-allow-origin"), Some(origin));
        assert_eq!(response.count("access-control-allow-credentials"), 0);
    }
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for origin in [
        "http://attacker.example",
        "https://127.0.0.1.attacker.example",
        "http://localhost.attacker.example",
        "http://localhost@attacker.example",
        "http://0.0.0.0:3000",
        "null",
        "",
        "*",
        "file://",
        "localhost",
        "http://",
        "http://localhost/",
        "chrome-extension://127.0.0.1",
        "http://127.0.0.1:3000 http://attacker.example",
    ] {
        for (method, target) in targets() {
            let request = Request::new(method, target)
                .header("Origin", origin)
                .header("Access-Control-Request-Method", "POST")
                .bearer(&good);
            let response = deployment.send_as_new_client(request).await;
            assert_eq!(
                response.status, 403,
                "{method} {target}, {origin}: {response:?}"
            );
            assert_eq!(
                response.count("access-control-allow-origin"),
                0,
                "{origin}: {response:?}"
            );
            denied.push((response, "origin.not_allowed"));
        }
    }
    let two = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(&good)
        .header("Origin", "http://localhost")
        .header("Origin", "http://localhost");
    let response = deployment.send_as_new_client(two).await;
    assert_eq!(response.status, 403, "{response:?}");

    denied.push((response, "origin.repeated"));
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// F3, F7: without authorization, the same hosts and origins are rejected.
#[tokio::test]
async fn without_authorization() {
    let deployment = Deployment::builder()
        .resource("auth = \"none\"")
        .start()
        .await;
    let post = |host: &str| {
        Request::without_host("POST", Deployment::ENDPOINT)
            .header("Host", host)
            .header("Content-Type", "application/json")
            .body(INITIALIZE)
    };
    assert_eq!(deployment.send(post("127.0.0.1")).await.status, 200);
    let before = deployment.upstream.count();
    assert_eq!(deployment.send(post("attacker.example")).await.status, 403);
    assert_eq!(
        deployment
            .send(post("localhost").header("Origin", "http://attacker.example"))
            .await
            .status,
        403
    );
    assert_eq!(
        deployment
            .send(post("localhost").header("Origin", "null"))
            .await
            .status,
        403
    );
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}

/// F3: hosts and origins can be added.
#[tokio::test]
async fn added_hosts_and_origins() {
    let settings =
        "allowed_hosts = [\"mcp.internal\"]\nallowed_origins = [\"https://app.example.com\"]";
    let deployment = Deployment::builder().resource(settings).start().await;
    let good = deployment.good_token();
    let post = |host: &str| {
        Request::without_host("POST", Deployment::ENDPOINT)
            .header("Host", host)
            .header("Content-Type", "application/json")
            .bearer(&good)
            .body(INITIALIZE)
    };
    assert_eq!(deployment.send(post("mcp.internal:8080")).await.status, 200);
    assert_eq!(
        deployment
            .send(post("127.0.0.1").header("Origin", "https://app.example.com"))
            .await
            .status,
        200
    );

    for origin in [
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://x.app.example.com",
    ] {
        assert_eq!(
            deployment
                .send(post("127.0.0.1").header("Origin", origin))
                .await
                .status,
            403,
            "{origin}"
        );
    }
    for host in ["x.mcp.internal", "mcp.internal.attacker.example"] {
        assert_eq!(deployment.send(post(host)).await.status, 403, "{host}");
    }
}
