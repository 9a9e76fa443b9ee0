//! Guard, endpoint and upstream together, over a real socket.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use portcullis_endpoint::{Endpoint, EndpointBody, EndpointLayer, EndpointSettings};
use portcullis_gateway::{
    HttpUpstream, HttpUpstreamSettings, IdentityHeader, IdentitySource, UpstreamAddress,
    UpstreamBody,
};
use portcullis_guard::{
    Authentication, Decision, DecisionSink, Guard, GuardBody, GuardLayer, GuardSettings, Peer,
    ProtectedResource,
};
use portcullis_metadata::{JwkSet, ProtectedResourceMetadata, ResourceUri};
use portcullis_session::{SessionKey, SessionSettings, SessionStore};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use portcullis_verifier::{IssuerSettings, KeySource, TrustedIssuer, Verifier, VerifierSettings};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tower::{Layer, ServiceExt};
use url::Url;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

const MODERN_LIST: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

type Stack = Guard<Endpoint<HttpUpstream>>;
type Body = GuardBody<EndpointBody<UpstreamBody>>;

#[derive(Default)]
struct Decided(Mutex<Vec<Option<&'static str>>>);

impl DecisionSink for Decided {
    fn decided(&self, decision: &Decision<'_>) {
        self.0.lock().push(decision.code);
    }
}

struct TestStack {
    listener: TcpListener,
    test_issuer: TestIssuer,
    decided: Arc<Decided>,
    stack: Stack,
}

/// Starts an upstream, and builds guard, endpoint and gateway in front of it.
async fn test_stack() -> TestStack {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let clock = Arc::new(ManualClock::new());
    let test_issuer = TestIssuer::new("https://auth.example.com");
    let decided = Arc::default();

    let mut issuer = IssuerSettings::new(test_issuer.issuer().clone());
    issuer.keys = KeySource::Fixed(JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap());
    let control = tokio::runtime::Handle::current();
    let issuer = TrustedIssuer::new(
        issuer,
        Arc::new(ScriptedFetch::new()),
        clock.clone(),
        control,
    )
    .unwrap();
    let resource = ResourceUri::parse(TestIssuer::RESOURCE).unwrap();
    let verifier = Verifier::new(
        VerifierSettings::new(resource.clone()),
        vec![issuer],
        clock.clone(),
    )
    .unwrap();

    let metadata = ProtectedResourceMetadata::new(resource, vec![test_issuer.issuer().clone()]);
    let mut guard = GuardSettings::new(metadata, Authentication::Required(verifier)).unwrap();
    guard.clock = clock.clone();
    guard.sink = Arc::<Decided>::clone(&decided);
    let resource = ProtectedResource::new(guard).unwrap();

    let sessions = SessionSettings::new(SessionKey::random().unwrap());
    let sessions = SessionStore::builder(sessions).clock(clock.clone()).build();
    let endpoint = EndpointLayer::new(EndpointSettings::new(resource.clone(), sessions)).unwrap();

    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let mut settings = HttpUpstreamSettings::new(UpstreamAddress::Tcp(url));
    let email = IdentitySource::Claim("email".into());
    settings
        .identity_headers
        .push(IdentityHeader::new("x-email".parse().unwrap(), email));
    settings.public_url = Some(Url::parse(TestIssuer::RESOURCE).unwrap());
    let upstream = HttpUpstream::new(settings, clock).unwrap();

    let stack = GuardLayer::new(resource).layer(endpoint.layer(upstream));
    TestStack {
        listener,
        test_issuer,
        decided,
        stack,
    }
}

impl TestStack {
    /// An authorized POST with this body.
    fn request(&self, body: &'static str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
        let token = self
            .test_issuer
            .token()
            .claim("email", "alice@example.com")
            .scope("mcp:tools")
            .sign();
        let mut request = Request::post("/mcp")
            .header("host", "mcp.example.com")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("x-portcullis-subject", "root")
            .header("x_email", "root@example.com")
            .header("x-forwarded-for", "127.0.0.1")
            .header("cookie", "a=1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Full::from(body)).unwrap();
        request
            .extensions_mut()
            .insert(Peer("192.0.2.7:1234".parse().unwrap()));
        request
    }

    async fn call(&self, request: Request<Full<Bytes>>) -> Response<Body> {
        self.stack
            .clone()
            .oneshot(request)
            .await
            .unwrap_or_else(|never| match never {})
    }
}

/// Reads one request with this body and responds.
async fn serve(socket: &mut TcpStream, body: &str, response: &str) -> String {
    let mut request = Vec::new();
    while !request.ends_with(body.as_bytes()) {
        request.push(socket.read_u8().await.unwrap());
    }
    socket.write_all(response.as_bytes()).await.unwrap();
    String::from_utf8(request).unwrap()
}

/// C12, L2: the upstream gets the caller's identity, but no credential.
#[tokio::test]
async fn the_upstream_gets_the_identity() {
    let bench = test_stack().await;
    let upstream = async {
        let (mut socket, _) = bench.listener.accept().await.unwrap();
        let response = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: backend-id\r\ncontent-length: 2\r\n\r\n{}";
        let first = serve(&mut socket, INITIALIZE, response).await;
        let response = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n4\r\n:a\n\n\r\n0\r\n\r\n";
        (first, serve(&mut socket, LIST, response).await)
    };
    let client = async {
        let opened = bench.call(bench.request(INITIALIZE, &[])).await;
        assert_eq!(opened.status(), StatusCode::OK);
        let session = opened.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let request_id = opened.headers()["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned();
        assert_ne!(session, "backend-id");
        assert_eq!(opened.into_body().collect().await.unwrap().to_bytes(), "{}");
        let listed = bench
            .call(bench.request(LIST, &[("mcp-session-id", &session)]))
            .await;
        assert_eq!(listed.headers()["x-accel-buffering"], "no");
        assert_eq!(
            listed.into_body().collect().await.unwrap().to_bytes(),
            ":a\n\n"
        );
        request_id
    };
    let ((first, second), request_id) = tokio::join!(upstream, client);
    let expected = [
        "x-portcullis-issuer: https://auth.example.com",
        "x-portcullis-subject: alice",
        "x-portcullis-client: test-client",
        "x-portcullis-scope: mcp:tools",
        "x-email: alice@example.com",
        "x-forwarded-for: 192.0.2.7",
        "x-forwarded-host: mcp.example.com",
        "content-type: application/json",
    ];
    for request in [&first, &second] {
        let headers: Vec<&str> = request.split("\r\n").collect();
        for line in expected {
            let name = line.split(':').next().unwrap();
            let values: Vec<_> = headers
                .iter()
                .filter(|header| header.split(':').next() == Some(name))
                .collect();
            assert_eq!(values, [&line], "{request}");
        }
        for absent in ["authorization", "Bearer", "cookie", "root"] {
            assert!(!request.contains(absent), "{absent} in {request}");
        }
    }
    assert!(first.contains(&format!("x-request-id: {request_id}\r\n")));
    assert!(!first.contains("mcp-session-id"));
    assert!(second.contains("mcp-session-id: backend-id\r\n"));
    assert_eq!(*bench.decided.0.lock(), [None, None]);
}

/// E9, F5: headers that `Connection` names are ignored in all checks, because they are not
/// forwarded.
#[tokio::test]
async fn connection_options_are_removed_before_all_checks() {
    let bench = test_stack().await;
    let response = "HTTP/1.1 200 OK\r\nmcp-session-id: backend-id\r\ncontent-length: 2\r\n\r\n{}";
    let upstream = async {
        let (mut socket, _) = bench.listener.accept().await.unwrap();
        serve(&mut socket, INITIALIZE, response).await;
        // Any further data was forwarded.
        let mut more = Vec::new();
        while socket.read_buf(&mut more).await.unwrap() > 0 && !more.ends_with(b"}") {}
        String::from_utf8(more).unwrap()
    };
    let client = async {
        let opened = bench.call(bench.request(INITIALIZE, &[])).await;
        let session = opened.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        for (body, headers, status, code) in [
            (
                LIST,
                &[
                    ("connection", "Mcp-Session-Id"),
                    ("mcp-session-id", &*session),
                ][..],
                400,
                "session.missing",
            ),
            (
                INITIALIZE,
                &[("connection", "content-type")],
                415,
                "body.content_type",
            ),
            (
                MODERN_LIST,
                &[
                    ("connection", "close, mcp-method"),
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/list"),
                ],
                400,
                "era.header_mismatch",
            ),
        ] {
            let response = bench.call(bench.request(body, headers)).await;
            assert_eq!(response.status(), status, "{headers:?}");
            assert_eq!(
                bench.decided.0.lock().last(),
                Some(&Some(code)),
                "{headers:?}"
            );
        }
        drop(opened);
    };
    tokio::select! {
        more = upstream => panic!("{more}"),
        () = client => {}
    }
}

/// J1, L1: the log has the reason of an upstream failure, and the client gets a generic 502.
#[tokio::test]
async fn only_the_log_has_the_reason_of_a_failure() {
    let bench = test_stack().await;
    let upstream = async {
        let (mut socket, _) = bench.listener.accept().await.unwrap();
        let response =
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n";
        serve(&mut socket, INITIALIZE, response).await;
        serve(&mut socket, INITIALIZE, "not HTTP at all\r\n\r\n").await;
    };
    let client = async {
        for _ in 0..2 {
            let response = bench.call(bench.request(INITIALIZE, &[])).await;
            assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
            assert!(!response.headers().contains_key("www-authenticate"));
            assert!(!response.headers().contains_key("mcp-session-id"));
            assert_eq!(response.headers()["content-type"], "application/json");
        }
    };
    tokio::join!(upstream, client);
    let decided = bench.decided.0.lock().clone();
    assert_eq!(
        decided,
        [Some("upstream.unauthorized"), Some("upstream.no_answer")]
    );
}
