//! The fixture of the upstream's tests over real sockets, and the end of sessions.

mod connections;
mod limits;
mod responses;

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, uri::PathAndQuery,
};
use http_body_util::BodyExt;
use portcullis_guard::RejectionCode;
use portcullis_http1::{RequestBuilder, SendError};
use portcullis_testkit::ManualClock;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream, UnixListener},
};
use url::Url;

use super::*;
use crate::{
    address::UpstreamAddress, request::InboundRequest, response::UpstreamBody,
    settings::HttpUpstreamSettings,
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
/// The caller's token, which no upstream sees.
const CANARY: &str = "canary";
const CREDENTIALS: &str = "Bearer canary";
const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The upstream's end of a connection.
struct Served<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Served<S> {
    /// Reads the next request, whose body is `{}` or empty. Returns `None` when the other end
    /// closes the connection.
    async fn request(&mut self) -> Option<String> {
        let mut read = Vec::new();
        loop {
            read.push(self.0.read_u8().await.ok()?);
            let Some(head) = read.strip_suffix(b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8(head.to_vec()).unwrap();
            if head.contains("content-length: 2") {
                let mut body = [0; 2];
                self.0.read_exact(&mut body).await.ok()?;
                return Some(format!(
                    "{head}\r\n\r\n{}",
                    std::str::from_utf8(&body).unwrap()
                ));
            }
            return Some(head);
        }
    }

    /// Sends a text, such as a response or a part of one.
    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads a request, responds with `text`, and returns the request.
    async fn respond(&mut self, text: &str) -> String {
        let request = self.request().await.unwrap();
        self.send(text).await;
        request
    }

    /// Waits until the other end closes the connection.
    async fn closed(&mut self) {
        assert!(matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_)));
    }
}

struct TestUpstream {
    listener: TcpListener,
    clock: ManualClock,
    upstream: HttpUpstream,
}

impl TestUpstream {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut HttpUpstreamSettings)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let clock = ManualClock::new();
        let upstream = upstream(listener.local_addr().unwrap(), &clock, change);
        Self {
            listener,
            clock,
            upstream,
        }
    }

    async fn accept(&self) -> Served<TcpStream> {
        Served(self.listener.accept().await.unwrap().0)
    }

    /// Sends a request and responds with `text` over a new connection.
    async fn answer_first(&self, text: &str) -> (Response<UpstreamBody>, Served<TcpStream>) {
        let serve = async {
            let mut served = self.accept().await;
            served.respond(text).await;
            served
        };
        tokio::join!(post(&self.upstream), serve)
    }

    /// Returns whether the next request uses `served` and not a new connection.
    async fn is_reused(&self, served: &mut Served<TcpStream>) -> bool {
        let serve = async {
            tokio::select! {
                Some(_) = served.request() => {
                    served.send(OK).await;
                    true
                }
                mut fresh = self.accept() => {
                    fresh.respond(OK).await;
                    false
                }
            }
        };
        let (response, reused) = tokio::join!(post(&self.upstream), serve);
        assert_eq!(text(response).await, "{}");
        reused
    }

    /// Lets the runtime process all events of its sockets.
    async fn notice(&self) {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (one, accepted) = tokio::join!(
            TcpStream::connect(other.local_addr().unwrap()),
            other.accept()
        );
        let mut one = one.unwrap();
        let mut two = accepted.unwrap().0;
        let (_, byte) = tokio::join!(async { one.write_u8(1).await.unwrap() }, two.read_u8());
        byte.unwrap();
    }
}

fn upstream(
    address: SocketAddr,
    clock: &ManualClock,
    change: impl FnOnce(&mut HttpUpstreamSettings),
) -> HttpUpstream {
    let url = Url::parse(&format!("http://{address}/mcp")).unwrap();
    let mut settings = HttpUpstreamSettings::new(UpstreamAddress::Tcp(url));
    change(&mut settings);
    HttpUpstream::new(settings, Arc::new(clock.clone())).unwrap()
}

fn call(
    upstream: &HttpUpstream,
    method: Method,
    body: &'static str,
) -> impl Future<Output = Response<UpstreamBody>> {
    send(upstream, method, Bytes::from_static(body.as_bytes()))
}

/// Sends a request with [`CANARY`] as its token.
fn send(
    upstream: &HttpUpstream,
    method: Method,
    body: Bytes,
) -> impl Future<Output = Response<UpstreamBody>> {
    let mut headers = HeaderMap::new();
    headers.insert(
        HeaderName::from_static("authorization"),
        HeaderValue::from_static(CREDENTIALS),
    );
    let inbound = InboundRequest {
        method,
        version: Version::HTTP_11,
        query: None,
        headers,
        body,
        identity: None,
        request_id: HeaderValue::from_static("made-here"),
        client_address: None,
        trace: None,
    };
    let response = upstream.forward(inbound, None, None);
    async { response.await.unwrap_or_else(|never| match never {}) }
}

fn post(upstream: &HttpUpstream) -> impl Future<Output = Response<UpstreamBody>> {
    call(upstream, Method::POST, "{}")
}

async fn text(response: Response<UpstreamBody>) -> String {
    String::from_utf8(
        response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .to_vec(),
    )
    .unwrap()
}

async fn event(response: &mut Response<UpstreamBody>) -> Bytes {
    response
        .body_mut()
        .frame()
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap()
}

/// The gateway's own response to a request that the upstream did not answer.
struct Failure {
    status: StatusCode,
    code: &'static str,
    content_type: String,
    body: String,
}

/// Returns the parts of the gateway's own response.
async fn failure(response: Response<UpstreamBody>) -> Failure {
    let status = response.status();
    let code = response.extensions().get::<RejectionCode>().unwrap().0;
    let content_type = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    Failure {
        status,
        code,
        content_type,
        body: text(response).await,
    }
}

/// E9: a session that ended here is ended at the upstream with a time limit.
#[tokio::test]
async fn sessions_are_ended_at_the_upstream() {
    let test_upstream = TestUpstream::new().await;
    let header = HeaderName::from_static("mcp-session-id");
    let serve = async {
        let mut served = test_upstream.accept().await;
        (
            served.respond("HTTP/1.1 204 No Content\r\n\r\n").await,
            served,
        )
    };
    let (status, (request, mut served)) = tokio::join!(
        test_upstream
            .upstream
            .end_session(header.clone(), b"backend-id"),
        serve
    );
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(request.starts_with("DELETE /mcp HTTP/1.1\r\n"));
    assert!(request.contains("mcp-session-id: backend-id\r\n"));

    assert_eq!(
        test_upstream
            .upstream
            .end_session(header.clone(), b"two\r\nlines")
            .await,
        StatusCode::BAD_REQUEST
    );

    tokio::time::pause();
    let silent = async {
        served.request().await.unwrap();
        served.closed().await;
    };
    let (status, ()) = tokio::join!(
        test_upstream.upstream.end_session(header, b"backend-id"),
        silent
    );
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
}

#[test]
fn everything_is_send() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<HttpUpstream>();
    is_sync::<HttpUpstream>();
    is_send::<UpstreamBody>();
    is_send::<UpstreamFuture>();
}
