//! Clients that exhaust resources: connections, endless heads, streams, resets and unread
//! responses. Each resource is bounded, and other clients are served meanwhile.

use std::time::Duration;

use bytes::Bytes;
use portcullis_scenarios::{
    Administration, ChannelBody, Connection, Deployment, EventStreams, INITIALIZE, RecordedRequest,
    Request, TIMEOUT, Upstream,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

const MIB: usize = 1 << 20;

/// The gauge of the memory that bodies use, in bytes.
const USED_MEMORY: &str = "portcullis_body_budget_used_bytes";

async fn limited(limits: &str) -> Deployment {
    Deployment::builder()
        .tables(format!("[limits]\n{limits}"))
        .start()
        .await
}

/// F4: while all connections have requests in progress, a new connection waits. It is served when
/// another one closes.
#[tokio::test]
async fn connections() {
    let streams = EventStreams::default();
    let upstream = streams.listening_upstream().await;
    let deployment = Deployment::builder()
        .upstream(upstream)
        .tables("[limits]\nmax_connections = 2")
        .start()
        .await;
    let address = deployment.portcullis.address();
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let stream = Request::new("GET", Deployment::ENDPOINT)
        .bearer(&token)
        .session(&session);
    let mut first = Connection::open(address).await;
    let mut second = Connection::open(address).await;
    for connection in [&mut first, &mut second] {
        connection.write(&stream.to_bytes()).await;
        assert_eq!(connection.head().await.expect("a head").status, 200);
    }

    // The kernel accepts the connection. The server does not, although the other connections have
    // been silent for a while.
    let mut third = Connection::open(address).await;
    third
        .write(&Request::new("GET", "/healthz").to_bytes())
        .await;
    sleep(Duration::from_millis(1500)).await;
    assert!(
        !deployment.portcullis.log().contains("/healthz"),
        "the third is not served"
    );

    for stream in 0..2 {
        streams.send(stream);
    }
    for connection in [&mut first, &mut second] {
        assert_eq!(
            connection.chunk().await.as_deref(),
            Some(EventStreams::EVENT.as_bytes()),
            "accepted connections are served"
        );
    }
    drop(second);
    assert_eq!(third.response().await.expect("a response").status, 200);
}

/// F4, L9: at the limit, a new connection replaces the one that has been idle for the longest time.
#[tokio::test]
async fn idle_connections_are_replaced() {
    let deployment = limited("max_connections = 2\nheader_timeout = \"10m\"").await;
    let address = deployment.portcullis.address();
    let healthy = Request::new("GET", "/healthz");
    let mut silent = Connection::open(address).await;
    let mut used = Connection::open(address).await;
    silent
        .write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        .await;
    // Long enough for both workers to accept their connections.
    sleep(Duration::from_secs(1)).await;
    assert_eq!(used.send(&healthy).await.status, 200);
    let mut third = Connection::open(address).await;
    assert_eq!(third.send(&healthy).await.status, 200);
    silent.assert_closed().await;
    assert_eq!(
        used.send(&healthy).await.status,
        200,
        "the most recently used connection remains open"
    );
}

/// F4: a connection is closed if a head is not complete in time, even if bytes keep arriving.
#[tokio::test]
async fn heads_that_never_end() {
    let deployment = limited("header_timeout = \"2s\"").await;
    let (mut reader, mut writer) = TcpStream::connect(deployment.portcullis.address())
        .await
        .unwrap()
        .into_split();
    let writing = tokio::spawn(async move {
        writer
            .write_all(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            .await
            .unwrap();
        let mut lines = 0;
        while writer.write_all(b"X-Slow: 1\r\n").await.is_ok() {
            lines += 1;
            sleep(Duration::from_millis(100)).await;
        }
        lines
    });
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200,
        "others are served"
    );

    let mut received = Vec::new();
    // A reset ends the connection, too.
    let _ = timeout(TIMEOUT, reader.read_to_end(&mut received))
        .await
        .expect("the connection is closed");
    assert!(
        received.is_empty() || received.starts_with(b"HTTP/1.1 4"),
        "{}",
        String::from_utf8_lossy(&received)
    );
    assert!(writing.await.unwrap() > 3, "bytes kept arriving");
}

/// F4: a body that pauses for too long is rejected, and its connection is closed.
#[tokio::test]
async fn bodies_that_pause() {
    let deployment = limited("body_pause = \"1s\"").await;
    let mut slow = Connection::open(deployment.portcullis.address()).await;
    let token = deployment.good_token();
    let head = Request::post(Deployment::ENDPOINT, "")
        .bearer(&token)
        .header("Content-Length", "1000");
    slow.write(&[&head.to_bytes()[..], b"{\"jsonrpc\":"].concat())
        .await;
    let response = slow.response().await.expect("a response");
    assert_eq!(response.status, 400, "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "body.broken")
        .await;
    slow.assert_closed().await;
    assert_eq!(deployment.upstream.count(), 0);
}

/// F4: connections with incomplete heads use little more memory than the heads.
#[tokio::test]
async fn incomplete_heads_use_little_memory() {
    const CONNECTIONS: usize = 500;
    let deployment = Deployment::start().await;
    let address = deployment.portcullis.address();
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200
    );

    let before = deployment.portcullis.resident();
    let half = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: {}",
        "x".repeat(16 << 10)
    );
    let mut flood = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(address).await;
        connection.write(half.as_bytes()).await;
        flood.push(connection);
    }
    for _ in 0..50 {
        deployment
            .assert_accepted("meanwhile", &deployment.good_token())
            .await;
    }
    let grown = deployment.portcullis.resident().saturating_sub(before);
    assert!(
        grown < CONNECTIONS * (64 << 10),
        "{} KiB a connection",
        grown / CONNECTIONS / 1024
    );
}

/// F4: clients that do not read responses slow down the upstream and do not use memory.
#[tokio::test]
async fn unread_responses() {
    const CLIENTS: usize = 20;
    let piece = Bytes::from(vec![b'x'; MIB]);
    let script = move |request: &RecordedRequest| {
        let (sender, body) = ChannelBody::new();
        // All pieces share one buffer, so they use no memory in this process.
        (0..64).for_each(|_| sender.send(piece.clone()).unwrap());
        request
            .header("x-large")
            .map(|_| Upstream::streaming(200, &[("content-type", "text/event-stream")], body))
    };
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.portcullis.resident();
    let large = Request::new("GET", Deployment::ENDPOINT)
        .bearer(&token)
        .session(&session)
        .header("X-Large", "yes");
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Connection::open(deployment.portcullis.address()).await;
        client.write(&large.to_bytes()).await;
        assert_eq!(client.head().await.expect("a head").status, 200);
        clients.push(client);
    }
    for _ in 0..50 {
        deployment.assert_accepted("meanwhile", &token).await;
    }
    let grown = deployment.portcullis.resident().saturating_sub(before);
    assert!(
        grown < CLIENTS * 2 * MIB,
        "{} KiB a client, of 64 MiB each",
        grown / CLIENTS / 1024
    );
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// A received frame of HTTP/2.
#[derive(Debug)]
struct Frame<'a> {
    frame_type: u8,
    payload: &'a [u8],
}

/// Returns the bytes of a frame (RFC 9113 section 4.1).
fn frame(frame_type: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [
        &length[1..],
        &[frame_type, flags],
        &stream.to_be_bytes(),
        payload,
    ]
    .concat()
}

/// Returns the complete frames in these bytes.
fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some((payload, rest)) = rest.split_at_checked(length) else {
            break;
        };
        frames.push(Frame {
            frame_type: head[3],
            payload,
        });
        bytes = rest;
    }
    frames
}

/// Returns a client's preface and this number of requests, each of which is immediately reset if
/// `reset` is set.
fn requests(count: u32, reset: bool) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    // GET, http, the path `/`, and `:authority: 127.0.0.1` (RFC 7541 appendix A).
    let head = [&[0x82, 0x86, 0x84, 0x41, 9], &b"127.0.0.1"[..]].concat();
    for number in 0..count {
        let stream = 1 + 2 * number;
        bytes.extend(frame(HEADERS, 0x05, stream, &head));
        if reset {
            bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        }
    }
    bytes
}

/// F4: a connection with many reset streams is closed (CVE-2023-44487).
#[tokio::test]
async fn rapid_resets() {
    let deployment = limited("max_resets = 5\nheader_timeout = \"5m\"").await;
    let mut client = Connection::open(deployment.portcullis.address()).await;
    client.write(&requests(500, true)).await;
    let rest = client.rest().await;
    let frames = frames(&rest);
    let goaway = frames
        .iter()
        .find(|frame| frame.frame_type == GOAWAY)
        .unwrap_or_else(|| panic!("no GOAWAY: {frames:?}"));
    assert_eq!(
        goaway.payload[4..8],
        11_u32.to_be_bytes(),
        "ENHANCE_YOUR_CALM"
    );
    assert_eq!(
        deployment
            .send(Request::new("GET", "/healthz"))
            .await
            .status,
        200
    );
}

/// F4: SETTINGS announce the maximum number of streams, and further streams are refused.
#[tokio::test]
async fn streams() {
    let deployment = limited("max_streams = 7\nheader_timeout = \"1s\"").await;
    let mut client = Connection::open(deployment.portcullis.address()).await;
    client.write(&requests(20, false)).await;
    let rest = client.rest().await;
    let frames = frames(&rest);
    let of_type = |frame_type: u8| {
        frames
            .iter()
            .filter(move |frame| frame.frame_type == frame_type)
    };
    let settings = of_type(SETTINGS)
        .find(|frame| !frame.payload.is_empty())
        .expect("settings");
    let streams = settings
        .payload
        .chunks_exact(6)
        .find(|setting| setting[..2] == [0, 3])
        .expect("a number of streams");
    assert_eq!(streams[2..], 7_u32.to_be_bytes());

    let refused: Vec<_> = of_type(RST_STREAM).collect();
    assert!(!refused.is_empty(), "{refused:?}");
    assert!(
        refused
            .iter()
            .all(|frame| frame.payload == 7_u32.to_be_bytes()),
        "{refused:?}"
    );
    let with_response = of_type(HEADERS).count();
    assert!(
        with_response >= 7,
        "{with_response} with a response, {} refused",
        refused.len()
    );
    assert_eq!(
        with_response + refused.len(),
        20,
        "{with_response} with a response, {} refused",
        refused.len()
    );
}

/// F4: the large bodies of one principal get a quarter of the memory for bodies, so that others can
/// send theirs. One that arrives too slowly is rejected.
#[tokio::test]
async fn bodies_of_one_principal() {
    const LARGE: usize = 200 << 10;
    let administration = Administration::default();
    let limits = "[limits]\nmax_body = 262144\nbody_budget = 1048576";
    let deployment = administration
        .of(Deployment::builder(), limits)
        .start()
        .await;
    let request = |subject: &str| {
        let token = deployment.token().subject(subject).sign();
        Request::post(Deployment::ENDPOINT, vec![b' '; LARGE])
            .bearer(&token)
            .to_bytes()
    };
    let incomplete = async |subject: &str| {
        let bytes = request(subject);
        let mut connection = Connection::open(deployment.portcullis.address()).await;
        connection.write(&bytes[..bytes.len() - 100]).await;
        connection
    };
    let mut slow = incomplete("mallory").await;
    administration
        .wait_for_metric(USED_MEMORY, LARGE - 100)
        .await;
    for _ in 0..2 {
        let rejected = incomplete("mallory")
            .await
            .response()
            .await
            .expect("a response");
        assert_eq!(rejected.status, 429, "{rejected:?}");
        assert_eq!(rejected.header("retry-after"), Some("1"));
        deployment
            .portcullis
            .assert_denied(&rejected, "body.principal_budget")
            .await;
    }
    let other = Connection::open(deployment.portcullis.address())
        .await
        .exchange(&request("alice"))
        .await;
    assert_eq!(other.status, 400, "its body was read to the end: {other:?}");

    // The first period had most of the body.
    sleep(Duration::from_secs(11)).await;
    slow.write(b" ").await;
    sleep(Duration::from_secs(11)).await;
    let rejected = slow.exchange(b" ").await;
    assert_eq!(rejected.status, 408, "{rejected:?}");
    deployment
        .portcullis
        .assert_denied(&rejected, "body.too_slow")
        .await;
}

/// E11: the revision of an `initialize` response is checked also while other clients use up the
/// memory for bodies.
#[tokio::test]
async fn initialize_without_a_budget() {
    const LARGE: usize = 200 << 10;
    const CLIENTS: usize = 5;
    let unknown =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{}}}"#;
    let unknown = format!("{unknown}{:8192}", "");
    let script = move |_: &RecordedRequest| {
        Some(Upstream::response(
            200,
            &[("content-type", "application/json")],
            unknown.clone(),
        ))
    };
    let limits = format!(
        "[limits]\nmax_body = 262144\nbody_budget = {}",
        CLIENTS * LARGE + 4096
    );
    let administration = Administration::default();
    let builder = Deployment::builder().upstream(Upstream::scripted(script).await);
    let deployment = administration.of(builder, &limits).start().await;
    let mut slow = Vec::new();
    for client in 0..CLIENTS {
        let token = deployment
            .token()
            .subject(&format!("mallory-{client}"))
            .sign();
        let bytes = Request::post(Deployment::ENDPOINT, vec![b' '; LARGE])
            .bearer(&token)
            .to_bytes();
        let mut connection = Connection::open(deployment.portcullis.address()).await;
        connection.write(&bytes[..bytes.len() - 100]).await;
        slow.push(connection);
    }
    administration
        .wait_for_metric(USED_MEMORY, CLIENTS * (LARGE - 100))
        .await;
    let token = deployment.good_token();
    let more = Request::post(Deployment::ENDPOINT, vec![b' '; 5000]).bearer(&token);
    assert_eq!(deployment.send(more).await.status, 503);

    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token))
        .await;
    assert_eq!(response.status, 400, "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "era.version_negotiated")
        .await;
}
