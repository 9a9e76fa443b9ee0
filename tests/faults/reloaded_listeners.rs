//! Reloads that change listeners: they are replaced with everything else, or nothing is.

use std::{net::SocketAddr, time::Duration};

use portcullis_scenarios::{
    Administration, Connection, EventStreams, ReloadableServer, Request, ReservedPort, Scratch,
    TIMEOUT, Upstream,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};

const LISTEN: &str = "listen = \"127.0.0.1:0\"";
const BASE_URL: &str = "base_url = \"http://127.0.0.1:3000\"";
const SCOPES: (&str, &str) = (
    "required_scopes = [\"mcp:tools\"]",
    "required_scopes = [\"mcp:admin\"]",
);

/// Returns the lines that make a server listen at an address, and its clients use it.
fn lines_for(address: SocketAddr) -> [String; 2] {
    [
        format!("listen = \"{address}\""),
        format!("base_url = \"http://{address}\""),
    ]
}

/// Returns the URL of the metadata in the challenge that a client at an address gets.
async fn challenged_at(address: SocketAddr) -> String {
    let response = Request::post("/mcp", "{}").send(address).await;
    assert_eq!(response.status, 401, "{response:?}");
    let url = response.challenge("resource_metadata");
    url.unwrap().to_owned()
}

/// Waits until an address refuses connections.
async fn assert_refuses(address: SocketAddr) {
    let started = Instant::now();
    while TcpStream::connect(address).await.is_ok() {
        assert!(started.elapsed() < TIMEOUT, "{address} accepts connections");
        sleep(Duration::from_millis(20)).await;
    }
}

/// J10: a changed address is listened on before challenges name it. The former one refuses
/// connections; those that it has finish their requests, and clients in its queue are answered.
#[tokio::test]
async fn a_changed_address() {
    let streams = EventStreams::default();
    let server = ReloadableServer::start(streams.listening_upstream().await, "").await;
    let former = server.portcullis.address();
    let token = server.token(ReloadableServer::MCP);
    let session = server.open_session("/mcp", &token).await;
    let mut stream = server.open_stream("/mcp", &token, &session).await;
    let mut idle = Connection::open(former).await;
    assert_eq!(
        idle.send(&Request::new("GET", "/healthz")).await.status,
        200
    );

    let moved = ReservedPort::new();
    let listen = format!("listen = \"{}\"", moved.address());
    let line = server.reload(&[(LISTEN, &listen)]).await;
    assert_eq!(line["message"], "the configuration was replaced", "{line}");
    assert_eq!(line["config.changes"], 1, "{line}");
    assert_refuses(former).await;
    idle.assert_closed().await;
    streams.send(0);
    assert_eq!(
        ReloadableServer::next_event(&mut stream).await.as_deref(),
        Some(EventStreams::EVENT.as_bytes()),
        "a request in progress continues"
    );
    let echo = Request::echo("/mcp", &token, &session);
    assert_eq!(echo.send(moved.address()).await.status, 200);

    let both = ReservedPort::new();
    let [listen, base_url] = lines_for(both.address());
    server
        .reload(&[(LISTEN, &listen), (BASE_URL, &base_url)])
        .await;
    let url = challenged_at(both.address()).await;
    assert!(
        url.starts_with(&format!("http://{}/", both.address())),
        "{url}"
    );
    assert_refuses(moved.address()).await;
}

/// J10: if an address cannot be listened on, nothing changes. The log has the address and the fix.
#[tokio::test]
async fn an_address_in_use() {
    let reserved = ReservedPort::new();
    let held = reserved.address();
    let holder = TcpListener::bind(held).await.unwrap();
    let server = ReloadableServer::start(Upstream::start().await, "").await;
    let address = server.portcullis.address();
    let token = server.token(ReloadableServer::MCP);
    let session = server.open_session("/mcp", &token).await;
    let before = challenged_at(address).await;

    let [listen, base_url] = lines_for(held);
    let line = server
        .reload(&[(LISTEN, &listen), (BASE_URL, &base_url), SCOPES])
        .await;
    assert_eq!(line["level"], "ERROR", "{line}");
    let reason = format!(
        "cannot listen on {held}; stop the program that uses the port, or choose another with listen"
    );
    server
        .portcullis
        .logged("config.reason", |line| {
            line["config.reason"]
                .as_str()
                .is_some_and(|text| text.starts_with(&reason))
        })
        .await;
    assert_eq!(challenged_at(address).await, before);
    assert_eq!(server.call("/mcp", &token, &session).await.status, 200);

    drop(holder);
    let line = server.reload(&[(LISTEN, &listen)]).await;
    assert_eq!(line["message"], "the configuration was replaced", "{line}");
}

/// J10: an address with the port of the running one is not listened on; the log says that it needs
/// a restart.
#[tokio::test]
async fn the_same_port() {
    let first = ReservedPort::new();
    let server = ReloadableServer::start(Upstream::start().await, "").await;
    let own = format!("listen = \"{}\"", first.address());
    server.reload(&[(LISTEN, &own)]).await;
    let everywhere = format!("listen = \"0.0.0.0:{}\"", first.port());
    let line = server.reload(&[(LISTEN, &everywhere)]).await;
    assert_eq!(line["level"], "ERROR", "{line}");
    let parts = ["has the same port; restart the server", "config.reason"];
    server.portcullis.logged_line(&parts).await;
    challenged_at(first.address()).await;
}

/// J10: TLS is added without another port. Connections without it end.
#[tokio::test]
async fn added_tls() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificates = Scratch::file("cert.pem", &cert.pem());
    let key = Scratch::file("key.pem", &signing_key.serialize_pem());
    let administration = Administration::default();
    let server = ReloadableServer::start(Upstream::start().await, &administration.table()).await;
    let address = server.portcullis.address();
    let mut plain = Connection::open(address).await;
    assert_eq!(
        plain.send(&Request::new("GET", "/healthz")).await.status,
        200
    );

    let base_url = format!(
        "base_url = \"https://localhost:3000\"\ntls = {{ certificates = \"{}\", key = \"{}\" }}",
        certificates.as_str(),
        key.as_str()
    );
    let line = server.reload(&[(BASE_URL, &base_url)]).await;
    assert_eq!(line["message"], "the configuration was replaced", "{line}");
    plain.assert_closed().await;
    let mut hello = TcpStream::connect(address).await.unwrap();
    hello.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut alert = Vec::new();
    timeout(TIMEOUT, hello.read_to_end(&mut alert))
        .await
        .unwrap()
        .unwrap();
    // RFC 8446 section 5.1: a record of type alert.
    assert_eq!(alert.first(), Some(&21), "{alert:?}");
    let expiry = "portcullis_certificate_expiry_timestamp_seconds{table=\"tls\"}";
    let metrics = administration.metrics(Administration::TOKEN).await;
    assert!(metrics.contains(expiry), "{metrics}");

    server.reload(&[]).await;
    challenged_at(address).await;
    let metrics = administration.metrics(Administration::TOKEN).await;
    assert!(!metrics.contains(expiry), "{metrics}");
}

/// J10, E12: another socket for administrators, and another token, replace the former ones.
#[tokio::test]
async fn a_changed_listener_for_administrators() {
    let [former, new] = [(); 2].map(|()| Administration::default());
    let server = ReloadableServer::start(Upstream::start().await, &former.table()).await;
    former.metrics(Administration::TOKEN).await;
    let line = server.reload(&[(&former.table(), &new.table())]).await;
    assert_eq!(line["message"], "the configuration was replaced", "{line}");
    new.metrics(Administration::TOKEN).await;
    let started = Instant::now();
    while former.socket().exists() {
        assert!(started.elapsed() < TIMEOUT, "the former socket exists");
        sleep(Duration::from_millis(20)).await;
    }

    let token = Scratch::file("token", "another-token-of-a-scenario-0123456789abcdef");
    let table = new.table();
    let start = table.find("token").unwrap();
    let table_with_token = format!(
        "{}token = {{ file = \"{}\" }}",
        &table[..start],
        token.as_str()
    );
    server.reload(&[(&former.table(), &table_with_token)]).await;
    let metrics = Request::new("GET", "/metrics").bearer(Administration::TOKEN);
    let (status, head, _) = new.respond(metrics).await;
    assert_eq!(status, 401, "{head}");
    new.metrics("another-token-of-a-scenario-0123456789abcdef")
        .await;
}
