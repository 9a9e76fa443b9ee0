//! Messages that arrive long after their token was verified. What was decided at the head must
//! still hold when the message is complete.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Method;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use portcullis_scenarios::{
    Administration, ChannelBody, Connection, Deployment, Http2, HttpResponse, RecordedRequest,
    ReloadableServer, Request, TIMEOUT, Upstream, modern_request,
};
use serde_json::json;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

/// Longer than a decision holds while a body arrives.
const SLOW: Duration = Duration::from_millis(1_300);

/// A message of revision 2026-07-28.
const LIST_TOOLS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A request whose body arrives in two parts.
struct Slow {
    connection: Connection,
    rest: Vec<u8>,
}

impl Slow {
    /// Sends everything but the end of the body.
    async fn start(address: SocketAddr, request: &Request) -> Self {
        let bytes = request.to_bytes();
        let (sent, rest) = bytes.split_at(bytes.len() - 5);
        let mut connection = Connection::open(address).await;
        connection.write(sent).await;
        Self {
            connection,
            rest: rest.to_vec(),
        }
    }

    /// Sends the end of the body and reads the response.
    async fn finish(mut self) -> HttpResponse {
        self.connection.exchange(&self.rest).await
    }
}

fn list_tools(token: &str) -> Request {
    modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(token)
}

/// N3: a token that expires while the body arrives does not admit the message.
#[tokio::test]
async fn a_token_expires_within_a_body() {
    let deployment = Deployment::builder()
        .issuer("leeway = \"0s\"")
        .start()
        .await;
    let request = list_tools(&deployment.token().expires_in(2).sign());
    let slow = Slow::start(deployment.portcullis.address(), &request).await;
    sleep(Duration::from_millis(2_500)).await;
    let response = slow.finish().await;
    assert_eq!(response.status, 401, "{response:?}");
    let challenge = response.header("www-authenticate").unwrap();
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    deployment
        .portcullis
        .assert_denied(&response, "token.expired")
        .await;
    assert_eq!(deployment.upstream.count(), 0);
}

/// N3: the same over HTTP/2.
#[tokio::test]
async fn a_token_expires_within_a_body_of_http2() {
    let deployment = Deployment::builder()
        .issuer("leeway = \"0s\"")
        .start()
        .await;
    for (lifetime, status) in [(2, 401), (60, 200)] {
        let token = deployment.token().expires_in(lifetime).sign();
        let stream = TcpStream::connect(deployment.portcullis.address())
            .await
            .unwrap();
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let (body, channel) = ChannelBody::new();
        let (first, rest) = LIST_TOOLS.split_at(20);
        let request = Http2::post(Deployment::ENDPOINT)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list")
            .header("authorization", format!("Bearer {token}"))
            .body(channel)
            .unwrap();
        body.send(Bytes::copy_from_slice(first.as_bytes())).unwrap();
        let response = tokio::spawn(sender.send_request(request));
        sleep(Duration::from_millis(2_500)).await;
        body.send(Bytes::copy_from_slice(rest.as_bytes())).unwrap();
        drop(body);
        let response = timeout(TIMEOUT, response).await.unwrap().unwrap().unwrap();
        assert_eq!(response.status(), status, "{lifetime}");
    }
    assert_eq!(deployment.upstream.count(), 1);
}

/// N3: a slow message whose token is still valid reaches the upstream once.
#[tokio::test]
async fn a_slow_message_is_forwarded_once() {
    let deployment = Deployment::start().await;
    let slow = Slow::start(
        deployment.portcullis.address(),
        &list_tools(&deployment.good_token()),
    )
    .await;
    sleep(SLOW).await;
    let response = slow.finish().await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(deployment.upstream.count(), 1);
    assert_eq!(
        deployment.upstream.last().header("x-portcullis-subject"),
        Some("alice")
    );
}

/// Returns an issuer that introspects, and whether its tokens are active.
async fn introspecting() -> (Upstream, Arc<AtomicBool>) {
    let is_active = Arc::new(AtomicBool::new(true));
    let active = Arc::clone(&is_active);
    let issuer = Upstream::scripted(move |request| {
        let origin = format!("http://{}", request.header("host").unwrap());
        let body = match request.target.as_str() {
            "/introspect" => json!({
                "active": active.load(Ordering::Relaxed),
                "aud": Deployment::RESOURCE,
                "client_id": "editor",
                "sub": "alice",
                "scope": "mcp:tools",
            }),
            "/.well-known/oauth-authorization-server" => {
                json!({ "issuer": origin, "introspection_endpoint": format!("{origin}/introspect") })
            }
            _ => return Some(Upstream::response(404, &[], "")),
        };
        Some(Upstream::response(200, &[("content-type", "application/json")], body.to_string()))
    })
    .await;
    (issuer, is_active)
}

/// Returns the table of an issuer that introspects, whose responses are cached for this long.
fn introspecting_table(issuer: &Upstream, cache: &str) -> String {
    format!(
        "[[issuer]]\nissuer = \"{}\"\nvalidate = \"introspection\"\nclient_id = \"portcullis\"\n\
         introspection_cache = \"{cache}\"",
        issuer.origin()
    )
}

/// Waits until the token of these tests is introspected.
async fn wait_for_introspection(issuer: &Upstream) {
    let is_introspection = |request: &RecordedRequest| {
        request.target == "/introspect"
            && String::from_utf8_lossy(&request.body).contains("opaque-token")
    };
    let introspected = async {
        while !issuer.recorded().iter().any(is_introspection) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, introspected).await.unwrap();
}

/// N3: a token that is revoked while the body arrives is introspected again, once its cached
/// response is stale.
#[tokio::test]
async fn a_token_is_revoked_within_a_body() {
    let (issuer, is_active) = introspecting().await;
    let deployment = Deployment::builder()
        .tables(introspecting_table(&issuer, "1s"))
        .start()
        .await;
    for (active, status) in [(true, 200), (false, 401)] {
        let slow = Slow::start(deployment.portcullis.address(), &list_tools("opaque-token")).await;
        sleep(SLOW / 2).await;
        is_active.store(active, Ordering::Relaxed);
        sleep(SLOW).await;
        let response = slow.finish().await;
        assert_eq!(response.status, status, "{response:?}");
        if !active {
            deployment
                .portcullis
                .assert_denied(&response, "token.inactive")
                .await;
        }
    }
    assert_eq!(deployment.upstream.count(), 1);
}

/// N3, C11: a token that is dropped while the body arrives is introspected again, for however long
/// its response would be cached.
#[tokio::test]
async fn tokens_are_dropped_within_a_body() {
    let (issuer, is_active) = introspecting().await;
    let administration = Administration::default();
    let tables = introspecting_table(&issuer, "30s");
    let deployment = administration
        .of(Deployment::builder(), &tables)
        .start()
        .await;
    let slow = Slow::start(deployment.portcullis.address(), &list_tools("opaque-token")).await;
    wait_for_introspection(&issuer).await;
    sleep(SLOW).await;
    is_active.store(false, Ordering::Relaxed);
    let drop_tokens = Request::post(
        "/v1/tokens/drop",
        json!({ "issuer": issuer.origin() }).to_string(),
    );
    let (status, dropped) = administration
        .send(drop_tokens.bearer(Administration::TOKEN))
        .await;
    assert_eq!(
        (status, &dropped["tokens_dropped"]),
        (200, &json!(1)),
        "{dropped}"
    );
    let response = slow.finish().await;
    assert_eq!(response.status, 401, "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "token.inactive")
        .await;
    assert_eq!(deployment.upstream.count(), 0);
}

/// N3: a reload while the body arrives lets the new rules decide: they reject the message, do not
/// know its resource, or admit it.
#[tokio::test]
async fn the_configuration_is_replaced_within_a_body() {
    let server = ReloadableServer::start(Upstream::start().await, "").await;
    let token = server.token(ReloadableServer::OTHER);
    let session = server.open_session("/other", &token).await;
    let request = || Request::echo("/other", &token, &session);
    let other = server.other_resource().to_owned();
    let with = |line: &str| {
        other.replacen(
            "endpoint = \"/other\"\n",
            &format!("endpoint = \"/other\"\n{line}\n"),
            1,
        )
    };
    for (changed, status) in [
        (with("realm = \"changed\""), 200),
        (with("required_scopes = [\"mcp:admin\"]"), 403),
        (
            format!("{other}[[resource.rule]]\nmethod = \"echo\"\nscopes = [\"mcp:admin\"]\n"),
            403,
        ),
        (String::new(), 404),
    ] {
        server.reload(&[]).await;
        let forwarded = server.upstream.count_of(&Method::POST);
        let slow = Slow::start(server.portcullis.address(), &request()).await;
        sleep(SLOW).await;
        let line = server.reload(&[(&other, &changed)]).await;
        assert_eq!(line["message"], "the configuration was replaced", "{line}");
        let response = slow.finish().await;
        assert_eq!(response.status, status, "{changed}: {response:?}");
        let expected = forwarded + usize::from(status == 200);
        assert_eq!(
            server.upstream.count_of(&Method::POST),
            expected,
            "{changed}"
        );
    }
}

/// N3, L9: a message that the new configuration decides about counts once for the limit of its
/// principal.
#[tokio::test]
async fn a_replaced_configuration_counts_a_message_once() {
    let limits = "[limits]\nin_flight_per_principal = 1";
    let server = ReloadableServer::start(Upstream::start().await, limits).await;
    let request = modern_request("/other", "tools/list", &json!({}))
        .bearer(&server.token(ReloadableServer::OTHER));
    let slow = Slow::start(server.portcullis.address(), &request).await;
    sleep(SLOW).await;
    let endpoint = "endpoint = \"/other\"\n";
    let line = server
        .reload(&[(endpoint, &format!("{endpoint}realm = \"changed\"\n"))])
        .await;
    assert_eq!(line["message"], "the configuration was replaced", "{line}");
    let response = slow.finish().await;
    assert_eq!(response.status, 200, "{response:?}");
}
