//! Which requests reach the broker.

use std::{
    sync::Arc,
    task::{Context, Waker},
};

use http::Request;
use portcullis_config::plan::Plan;
use portcullis_metadata::SystemClock;

use super::{super::persistence::BrokerPersistence, TestServer, plan};
use crate::router::broker_response::BrokerCall;

/// Clients find the metadata of the broker at all paths at which they look for it, also with the
/// path of a resource inserted, and scripts of all origins can read it.
#[tokio::test]
async fn the_metadata_is_at_all_its_paths() {
    let server = TestServer::new();
    for base in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ] {
        for path in ["", "/mcp", "/other"] {
            let target = format!("{base}{path}");
            let found = server
                .request("GET", &target, "Origin: https://app.example\r\n")
                .await;
            assert_eq!(found.status(), 200, "{target}");
            assert_eq!(found.json()["issuer"], "http://127.0.0.1:3000");
            assert_eq!(found.header("access-control-allow-origin"), Some("*"));
            assert_eq!(found.header("x-request-id").unwrap().len(), 36);
        }
        let unknown = server.get(&format!("{base}/unknown")).await;
        assert_eq!(unknown.status(), 404);
    }
    let keys = server.get("/oauth/jwks").await;
    assert_eq!(keys.json()["keys"][0]["crv"], "P-256");
}

/// The metadata of a resource names the broker, and is not the broker's.
#[tokio::test]
async fn resources_name_the_broker() {
    let server = TestServer::new();
    let metadata = server
        .get("/.well-known/oauth-protected-resource/mcp")
        .await;
    assert_eq!(
        metadata.json()["authorization_servers"],
        serde_json::json!(["http://127.0.0.1:3000"])
    );
}

#[tokio::test]
async fn a_head_request_gets_no_body() {
    let server = TestServer::new();
    let target = "/.well-known/oauth-authorization-server";
    let length = server.get(target).await.body().len().to_string();
    let head = server.request("HEAD", target, "").await;
    assert_eq!((head.status(), head.body()), (200, ""));
    assert_eq!(head.header("content-length"), Some(&*length));
}

/// Everything below `/oauth/` belongs to the broker, and other paths do not.
#[tokio::test]
async fn other_paths_are_not_found() {
    let server = TestServer::new();
    for target in ["/oauth/", "/oauth/unknown", "/oauth/token/", "/oauth", "/x"] {
        assert_eq!(server.get(target).await.status(), 404, "{target}");
    }
    assert_eq!(server.get("/oauth/token").await.status(), 405);
    assert_eq!(server.get("/healthz").await.status(), 200);
}

/// A strict replica that cannot reach Redis does not say that a token is active which may have
/// ended elsewhere, nor anything else that depends on records. Its documents do not.
#[cfg(feature = "redis")]
#[tokio::test]
async fn a_strict_replica_answers_nothing_from_memory() {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        format!("{{ file = {path:?} }}")
    };
    let broker_keys = file(
        "broker",
        &portcullis_broker::BrokerKeys::generate().unwrap(),
    );
    let session_keys = file("sessions", &"a".repeat(43));
    let shared = format!(
        "[shared]\nredis = \"redis://127.0.0.1:1\"\nstrict = true\n[session]\nkeys = [{session_keys}]\n\
         [broker]\nkeys = {broker_keys}\nintrospection = [{{ client_id = \"reports\", client_secret = {{ env = \"PATH\" }}, \
         resource = \"/mcp\" }}]"
    );
    let plan = plan(&[("[broker]", &shared)]);
    let persistence = BrokerPersistence::in_memory(&plan, Arc::new(SystemClock::new()));
    let server = TestServer::with(&plan, persistence.unwrap());
    for target in ["/oauth/introspect", "/oauth/revoke", "/oauth/token"] {
        let response = server.request("POST", target, "").await;
        assert_eq!(response.status(), 503, "{target}");
        assert_eq!(response.header("retry-after"), Some("1"));
    }
    assert_eq!(server.get("/oauth/authorize").await.status(), 503);
    assert_eq!(server.get("/mcp").await.status(), 503);
    for target in [
        "/oauth/jwks",
        "/.well-known/oauth-authorization-server/mcp",
        "/healthz",
    ] {
        assert_eq!(server.get(target).await.status(), 200, "{target}");
    }
}

/// DNS rebinding: a request for another host does not reach the broker.
#[tokio::test]
async fn other_hosts_are_refused() {
    let server = TestServer::new();
    let request = |host: &str| {
        format!("GET /oauth/jwks HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    };
    assert_eq!(server.send(&request("evil.example")).await.status(), 403);
    assert_eq!(server.send(&request("localhost:3000")).await.status(), 200);
}

/// A preflight for an endpoint that scripts of other origins may use is answered by the broker, and
/// not by the policy for other paths.
#[tokio::test]
async fn the_broker_decides_about_origins() {
    let server = TestServer::new();
    let headers = "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n";
    let token = server.request("OPTIONS", "/oauth/token", headers).await;
    assert_eq!(token.status(), 204);
    assert_eq!(token.header("access-control-allow-origin"), Some("*"));
    let authorize = server.request("OPTIONS", "/oauth/authorize", headers).await;
    assert_eq!(authorize.status(), 405);
    assert_eq!(authorize.header("access-control-allow-origin"), None);
}

/// OR1: a resource has the origin of the broker, so that no service worker is registered there.
#[tokio::test]
async fn service_workers_are_refused() {
    let server = TestServer::new();
    let header = "Service-Worker: script\r\n";
    let refused = server.request("GET", "/mcp", header).await;
    assert_eq!((refused.status(), refused.body()), (403, "refused\n"));
    assert_eq!(server.get("/mcp").await.status(), 401);
}

/// A body is bounded, whether its length is declared or not.
#[tokio::test]
async fn long_bodies_are_refused() {
    let server = TestServer::new();
    let form = "Content-Type: application/x-www-form-urlencoded";
    let head = format!(
        "POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\n{form}\r\n"
    );
    let declared = |length: usize| {
        let body = "a".repeat(length);
        format!("{head}Content-Length: {length}\r\n\r\n{body}")
    };
    assert_eq!(server.send(&declared(32 << 10)).await.status(), 401);
    assert_eq!(server.send(&declared((32 << 10) + 1)).await.status(), 413);
    let piece = format!("1000\r\n{}\r\n", "a".repeat(0x1000));
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        piece.repeat(9)
    );
    assert_eq!(server.send(&chunked).await.status(), 413);
}

/// A body that does not arrive does not keep a permit.
#[tokio::test(start_paused = true)]
async fn slow_bodies_time_out() {
    let server = TestServer::new();
    let request = "POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\nContent-Length: 5\r\n\r\na";
    let response = server.send(request).await;
    assert_eq!(response.status(), 408);
    let process = server.state.load().process().broker.clone().unwrap();
    assert_eq!(process.bodies.available_permits(), 1024);
}

/// The number of requests that are answered at a time is bounded.
#[tokio::test]
async fn too_many_requests_are_refused() {
    let server = TestServer::new();
    let process = server.state.load().process().broker.clone().unwrap();
    let permits = process.requests.try_acquire_many(512).unwrap();
    let busy = server.get("/oauth/jwks").await;
    assert_eq!(busy.status(), 503);
    assert_eq!(busy.header("retry-after"), Some("1"));
    drop(permits);
    assert_eq!(server.get("/oauth/jwks").await.status(), 200);
}

/// OR4: limits count the client behind a trusted proxy, and not the address that a client asserts.
#[tokio::test]
async fn clients_are_told_apart_behind_a_trusted_proxy() {
    let address = |plan: &Plan, header: &str| {
        let persistence = BrokerPersistence::in_memory(plan, Arc::new(SystemClock::new()));
        let server = TestServer::with(plan, persistence.unwrap());
        let request = Request::get("/oauth/jwks").header("X-Forwarded-For", header);
        let request = request.body(()).unwrap();
        let peer = ([127, 0, 0, 1], 1).into();
        BrokerCall::new(&server.state.load_full(), &request, peer)
            .unwrap()
            .address()
            .to_string()
    };
    let trusting = plan(&[("[broker]", "trusted_proxies = [\"127.0.0.1\"]\n[broker]")]);
    assert_eq!(
        address(&trusting, "192.0.2.1, 198.51.100.1"),
        "198.51.100.1"
    );
    assert_eq!(address(&plan(&[]), "198.51.100.1"), "127.0.0.1");
}

/// What a request began does not end with the connection of the client.
#[tokio::test]
async fn a_request_outlives_its_connection() {
    let server = TestServer::new();
    let process = server.state.load().process().broker.clone().unwrap();
    let request = Request::get("/oauth/jwks").header("Host", "127.0.0.1:3000");
    let request = request.body(http_body_util::Empty::new()).unwrap();
    let peer = ([127, 0, 0, 1], 1).into();
    let call = BrokerCall::new(&server.state.load_full(), &request, peer).unwrap();
    let mut response = Box::pin(call.respond(request));
    // The first poll passes the request to the control runtime.
    let mut context = Context::from_waker(Waker::noop());
    assert!(response.as_mut().poll(&mut context).is_pending());
    drop(response);
    assert_eq!(process.requests.available_permits(), 511);
    while process.requests.available_permits() < 512 {
        tokio::task::yield_now().await;
    }
}

/// J1: requests beyond a limit of the broker have a reason code, so that a flood of them is summed
/// in the log.
#[tokio::test]
async fn a_flood_is_summed_in_the_log() {
    const FLOOD: usize = 40;
    /// The registrations of one address in a minute.
    const LIMIT: usize = 60;
    let server = TestServer::with_still_clock();
    let registration = "POST /oauth/register HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\nContent-Type: \
                        application/json\r\nContent-Length: 2\r\n\r\n{}";
    for _ in 0..LIMIT {
        assert_eq!(server.send(registration).await.status(), 400);
    }
    for _ in 0..FLOOD {
        assert_eq!(server.send(registration).await.status(), 429);
    }
    let mut log = Vec::new();
    server.state.load().access().flush(&mut log).unwrap();
    let log = String::from_utf8(log).unwrap();
    let limited: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("broker.limited"))
        .collect();
    assert_eq!(limited.len(), 10 + 1, "{limited:#?}");
    let counted = format!(" count={} ", FLOOD - 10);
    assert!(limited[10].contains(&counted), "{limited:#?}");
}
