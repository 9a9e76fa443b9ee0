//! The CPU time of a request over this crate's connection and over hyper's:
//! `cargo bench -p portcullis-http1`. Linux only.
//!
//! All variants send the same request over loopback and read the same response, on one thread, with
//! a number of connections in parallel. A server on another thread answers. The figures are the CPU
//! time of the client thread. In each round every variant has its turn, and differences are taken
//! within a round.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark")]

use std::{
    fs,
    future::poll_fn,
    net::SocketAddr,
    pin::{Pin, pin},
    task::Poll,
    thread,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header::HOST, uri::PathAndQuery,
};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use portcullis_http1::{Connection, EncodedHeaders, RequestBuilder};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::{JoinSet, LocalSet},
};

const ROUNDS: usize = 41;
const CONNECTIONS: usize = 16;
/// Requests on each connection in one round.
const REQUESTS: usize = 500;

const TARGET: &str = "/mcp";
const BODY: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 89\r\n\
    date: Sun, 22 Nov 2026 12:00:00 GMT\r\n\r\n\
    {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"0123456789abcdef\"}]}}";

#[derive(Clone, Copy)]
enum Variant {
    /// This crate.
    Http1,
    /// hyper, whose connection the requesting task polls.
    HyperInline,
    /// hyper, whose connection is a task of its own on the same thread.
    HyperTask,
}

const VARIANTS: [(&str, Variant); 3] = [
    ("portcullis-http1", Variant::Http1),
    ("hyper, polled inline", Variant::HyperInline),
    ("hyper, spawned", Variant::HyperTask),
];

fn main() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || serve(listener));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut rounds = Vec::new();
    for round in 0..=ROUNDS {
        let mut times = [0.0; VARIANTS.len()];
        for turn in 0..VARIANTS.len() {
            let variant = (round + turn) % VARIANTS.len();
            times[variant] = runtime.block_on(measure(address, VARIANTS[variant].1));
        }
        rounds.push(times);
    }

    // The first round warms up.
    rounds.remove(0);
    println!(
        "{:<22} {:>17} {:>24}",
        "CPU of the client", "us a request", "over portcullis-http1"
    );
    for (variant, (name, _)) in VARIANTS.iter().enumerate() {
        let time = median(rounds.iter().map(|times| times[variant]));
        let difference = median(rounds.iter().map(|times| times[variant] - times[0]));
        println!("{name:<22} {time:>17.2} {difference:>21.2} us");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Answers each request on each connection. All requests have the same length, which the first one
/// shows.
fn serve(listener: std::net::TcpListener) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a listener");
        let listener = TcpListener::from_std(listener).expect("a listener");
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a connection");
            tokio::spawn(async move {
                let mut request = Vec::with_capacity(4096);
                while stream
                    .read_buf(&mut request)
                    .await
                    .is_ok_and(|read| read > 0)
                {
                    if request.ends_with(BODY) {
                        request.clear();
                        stream.write_all(RESPONSE).await.expect("a client");
                    }
                }
            });
        }
    });
}

/// The CPU time of this thread for a request, in microseconds.
async fn measure(address: SocketAddr, variant: Variant) -> f64 {
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).await.expect("a server");
        stream.set_nodelay(true).expect("a connection");
        streams.push(stream);
    }
    let tasks = LocalSet::new();
    let mut requests = JoinSet::new();
    let started = thread_time();
    for stream in streams {
        match variant {
            Variant::Http1 => requests.spawn_local_on(over_http1(stream), &tasks),
            Variant::HyperInline => requests.spawn_local_on(over_hyper_inline(stream), &tasks),
            Variant::HyperTask => requests.spawn_local_on(over_hyper_task(stream), &tasks),
        };
    }
    tasks
        .run_until(async {
            while let Some(finished) = requests.join_next().await {
                finished.expect("no failed request");
            }
        })
        .await;
    (thread_time() - started) as f64 / 1e3 / (CONNECTIONS * REQUESTS) as f64
}

/// The CPU time of this thread so far, in nanoseconds.
fn thread_time() -> u64 {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    schedstat
        .split(' ')
        .next()
        .and_then(|time| time.parse().ok())
        .expect("a number")
}

/// The headers of an inbound request that go to the upstream.
fn inbound() -> HeaderMap {
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("accept-encoding", "gzip, deflate, br"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", "0e3b5d5c-6a1f-4a0e-8d57-2f6c9b7e1a43"),
        ("user-agent", "benchmark/1.0"),
        ("x-request-id", "5f0d3b1c-7a52-4d0e-9c58-2f6c9b7e1a43"),
    ];
    headers
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .into_iter()
        .collect()
}

/// The headers that a proxy adds to each request.
fn added() -> Vec<(HeaderName, HeaderValue)> {
    let headers = [
        ("via", "1.1 portcullis"),
        (
            "x-portcullis-issuer",
            "https://auth.example.com/realms/prod",
        ),
        (
            "x-portcullis-subject",
            "5f0d3b1c-7a52-4d0e-9c58-000000000001",
        ),
        ("x-portcullis-client", "client"),
        ("x-portcullis-scope", "mcp:admin mcp:tools"),
        (
            "forwarded",
            "for=192.0.2.7;host=\"mcp.example.com\";proto=https",
        ),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "mcp.example.com"),
    ];
    headers
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .into()
}

const HOST_VALUE: HeaderValue = HeaderValue::from_static("upstream.internal:8000");

/// Sends all requests over this crate's connection.
async fn over_http1(stream: TcpStream) {
    let inbound = inbound();
    let added = added().into_iter().collect::<EncodedHeaders>();
    let target = PathAndQuery::from_static(TARGET);
    let mut connection = Connection::new(stream);
    for _ in 0..REQUESTS {
        let headers = inbound.clone();
        let mut request = RequestBuilder::new(&Method::POST, &target);
        request.header(&HOST, &HOST_VALUE);
        for (name, value) in &headers {
            request.header(name, value);
        }
        request.headers(&added);
        let (response, mut responded) = connection
            .send(request.body(Bytes::from_static(BODY)))
            .await
            .expect("a response");
        assert!(response.status().is_success());
        let mut length = 0;
        while let Some(data) = responded.next_data().await {
            length += data.expect("a body").len();
        }
        assert_eq!(length, 89);
        assert!(responded.is_reusable());
        connection = responded;
    }
}

/// The request that hyper sends.
fn hyper_request(
    uri: &Uri,
    inbound: &HeaderMap,
    added: &[(HeaderName, HeaderValue)],
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::from_static(BODY)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    let mut headers = inbound.clone();
    headers.insert(HOST, HOST_VALUE);
    headers.extend(added.iter().cloned());
    *request.headers_mut() = headers;
    request
}

/// Sends all requests over hyper's connection, polled by the request's task.
async fn over_hyper_inline(stream: TcpStream) {
    let inbound = inbound();
    let added = added();
    let uri = Uri::from_static(TARGET);
    let (mut sender, mut connection) = http1::handshake(TokioIo::new(stream))
        .await
        .expect("a connection");
    for _ in 0..REQUESTS {
        // Also shows whether the server has closed the connection.
        with(&mut connection, sender.ready())
            .await
            .expect("an open connection");
        let response = sender.try_send_request(hyper_request(&uri, &inbound, &added));
        let response = with(&mut connection, response)
            .await
            .unwrap_or_else(|_| panic!("no response"));
        assert!(response.status().is_success());
        let mut body = response.into_body();
        let mut length = 0;
        while let Some(frame) = with(&mut connection, body.frame()).await {
            length += frame.expect("a body").data_ref().map_or(0, Bytes::len);
        }
        assert_eq!(length, 89);
    }
}

/// Polls `connection` before `future`, in the same task.
async fn with<F: Future>(
    connection: &mut http1::Connection<TokioIo<TcpStream>, Full<Bytes>>,
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        let _ = Pin::new(&mut *connection).poll(cx);
        future.as_mut().poll(cx)
    })
    .await
}

/// Sends all requests over hyper's connection in a task of its own.
async fn over_hyper_task(stream: TcpStream) {
    let inbound = inbound();
    let added = added();
    let uri = Uri::from_static(TARGET);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .expect("a connection");
    let driver = tokio::task::spawn_local(connection);
    for _ in 0..REQUESTS {
        sender.ready().await.expect("an open connection");
        let response = sender
            .send_request(hyper_request(&uri, &inbound, &added))
            .await
            .expect("a response");
        assert!(response.status().is_success());
        assert_eq!(
            response
                .into_body()
                .collect()
                .await
                .expect("a body")
                .to_bytes()
                .len(),
            89
        );
    }
    drop(sender);
    driver.await.expect("no panic").expect("a connection");
}
