use std::{future::Future, net::SocketAddr};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use portcullis_guard::RefusalCode;
use portcullis_testkit::ManualClock;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream, UnixListener},
};
use url::Url;

use super::*;
use crate::{Address, link::SendError};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The upstream's end of a connection, in plain bytes.
struct Served<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Served<S> {
    /// The next request, whose body is `{}` or empty; nothing when the other end closes the connection.
    async fn request(&mut self) -> Option<String> {
        let mut read = Vec::new();
        loop {
            read.push(self.0.read_u8().await.ok()?);
            let Some(head) = read.strip_suffix(b"\r\n\r\n") else { continue };
            let head = String::from_utf8(head.to_vec()).unwrap();
            if head.contains("content-length: 2") {
                let mut body = [0; 2];
                self.0.read_exact(&mut body).await.ok()?;
                return Some(format!("{head}\r\n\r\n{}", std::str::from_utf8(&body).unwrap()));
            }
            return Some(head);
        }
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, text: &str) -> String {
        let request = self.request().await.unwrap();
        self.send(text).await;
        request
    }

    /// Waits until the other end closes the connection.
    async fn closed(&mut self) {
        assert!(matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_)));
    }
}

struct Bench {
    listener: TcpListener,
    clock: ManualClock,
    upstream: HttpUpstream,
}

impl Bench {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut HttpUpstreamSettings)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let clock = ManualClock::new();
        let upstream = upstream(listener.local_addr().unwrap(), &clock, change);
        Self { listener, clock, upstream }
    }

    async fn accept(&self) -> Served<TcpStream> {
        Served(self.listener.accept().await.unwrap().0)
    }

    /// One request, answered with `text` over a new connection.
    async fn first(&self, text: &str) -> (Response<UpstreamBody>, Served<TcpStream>) {
        let serve = async {
            let mut served = self.accept().await;
            served.answer(text).await;
            served
        };
        tokio::join!(post(&self.upstream), serve)
    }

    /// Whether the next request comes over `served`, as opposed to a new connection.
    async fn is_reused(&self, served: &mut Served<TcpStream>) -> bool {
        let serve = async {
            tokio::select! {
                Some(_) = served.request() => {
                    served.send(OK).await;
                    true
                }
                mut fresh = self.accept() => {
                    fresh.answer(OK).await;
                    false
                }
            }
        };
        let (response, reused) = tokio::join!(post(&self.upstream), serve);
        assert_eq!(text(response).await, "{}");
        reused
    }

    /// Lets the runtime notice everything that has happened on its sockets.
    async fn notice(&self) {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (one, accepted) = tokio::join!(TcpStream::connect(other.local_addr().unwrap()), other.accept());
        let (mut one, mut two) = (one.unwrap(), accepted.unwrap().0);
        let (_, byte) = tokio::join!(async { one.write_u8(1).await.unwrap() }, two.read_u8());
        byte.unwrap();
    }
}

fn upstream(address: SocketAddr, clock: &ManualClock, change: impl FnOnce(&mut HttpUpstreamSettings)) -> HttpUpstream {
    let url = Url::parse(&format!("http://{address}/mcp")).unwrap();
    let mut settings = HttpUpstreamSettings::new(Address::Tcp(url));
    change(&mut settings);
    HttpUpstream::new(settings, Arc::new(clock.clone())).unwrap()
}

fn call(upstream: &HttpUpstream, method: Method, body: &'static str) -> impl Future<Output = Response<UpstreamBody>> {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("authorization"), HeaderValue::from_static("Bearer canary"));
    let inbound = Inbound {
        method,
        version: Version::HTTP_11,
        query: None,
        headers,
        body: Bytes::from_static(body.as_bytes()),
        identity: None,
        request_id: HeaderValue::from_static("made-here"),
        peer: None,
    };
    let answer = upstream.answer(inbound);
    async { answer.await.unwrap_or_else(|never| match never {}) }
}

fn post(upstream: &HttpUpstream) -> impl Future<Output = Response<UpstreamBody>> {
    call(upstream, Method::POST, "{}")
}

async fn text(response: Response<UpstreamBody>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn event(response: &mut Response<UpstreamBody>) -> Bytes {
    response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap()
}

/// The answer's status, reason code, content type and body.
async fn refused(response: Response<UpstreamBody>) -> (u16, &'static str, String, String) {
    let code = response.extensions().get::<RefusalCode>().unwrap().0;
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    (response.status().as_u16(), code, content_type, text(response).await)
}

/// C12, L1: the request goes over whole, without the caller's credentials, and the answer comes back.
#[tokio::test]
async fn a_request_and_its_answer() {
    let bench = Bench::new().await;
    let serve = async { bench.accept().await.answer(OK).await };
    let (response, request) = tokio::join!(post(&bench.upstream), serve);
    let (line, rest) = request.split_once("\r\n").unwrap();
    assert_eq!(line, "POST /mcp HTTP/1.1");
    assert!(rest.contains("x-request-id: made-here\r\n") && rest.ends_with("\r\n\r\n{}"), "{rest}");
    assert!(rest.contains(&format!("host: {}\r\n", bench.listener.local_addr().unwrap())), "{rest}");
    assert!(!request.contains("canary"));
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (StatusCode::OK, &"application/json".parse().unwrap())
    );
    assert!(response.extensions().is_empty());
    assert_eq!(text(response).await, "{}");
}

/// L1: each event is handed on before the upstream says the next.
#[tokio::test]
async fn events_are_streamed_one_by_one() {
    let bench = Bench::new().await;
    let (mut response, mut served) = bench.first(STREAM_HEAD).await;
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    for number in 0..3 {
        served.send(&format!("9\r\ndata: {number}\n\n\r\n")).await;
        assert_eq!(event(&mut response).await, format!("data: {number}\n\n"));
    }
    served.send("0\r\n\r\n").await;
    assert!(response.body_mut().frame().await.is_none());
    assert!(bench.is_reused(&mut served).await);
}

/// L1: connections are used again, whatever the form of the last answer.
#[tokio::test]
async fn connections_are_pooled() {
    let answers = [
        OK,
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-trailer: 1\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ];
    for answer in answers {
        let bench = Bench::new().await;
        let (response, mut served) = bench.first(answer).await;
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            assert!(frame.unwrap().is_data());
        }
        assert!(bench.is_reused(&mut served).await, "{answer}");
        assert!(bench.is_reused(&mut served).await, "{answer}");
    }
}

/// L1: a connection is free again once the whole answer has arrived, read or not.
#[tokio::test]
async fn a_complete_answer_frees_its_connection_at_once() {
    let bench = Bench::new().await;
    let (unread, mut served) = bench.first(OK).await;
    assert!(bench.is_reused(&mut served).await);
    assert_eq!(text(unread).await, "{}");
}

/// L1: requests at the same time go over connections of their own.
#[tokio::test]
async fn concurrent_requests_do_not_share() {
    let bench = Bench::with(|settings| settings.max_idle = 1).await;
    let serve = async {
        let (mut one, mut two) = (bench.accept().await, bench.accept().await);
        one.answer(OK).await;
        two.answer(OK).await;
        (one, two)
    };
    let (first, second, (mut one, mut two)) = tokio::join!(post(&bench.upstream), post(&bench.upstream), serve);
    assert_eq!((text(first).await, text(second).await), ("{}".into(), "{}".into()));
    // Only one is kept: the last that became free.
    one.closed().await;
    assert!(bench.is_reused(&mut two).await);
}

/// L1: a connection that the upstream does not keep, or that waited too long, is not used again.
#[tokio::test]
async fn stale_connections_are_not_used() {
    let bench = Bench::new().await;
    let closing = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let (response, mut served) = bench.first(closing).await;
    assert!(!response.headers().contains_key("connection"));
    assert_eq!(text(response).await, "{}");
    assert!(!bench.is_reused(&mut served).await);

    let bench = Bench::new().await;
    let (response, mut served) = bench.first(OK).await;
    drop(response);
    bench.clock.advance(Duration::from_millis(3999));
    assert!(bench.is_reused(&mut served).await);
    bench.clock.advance(Duration::from_secs(4));
    assert!(!bench.is_reused(&mut served).await);

    let bench = Bench::with(|settings| settings.max_idle = 0).await;
    let (response, mut served) = bench.first(OK).await;
    drop(response);
    assert!(!bench.is_reused(&mut served).await);
}

/// L1: connections that nobody needs any more are closed when another is put beside them.
#[tokio::test]
async fn unneeded_connections_are_closed() {
    let bench = Bench::new().await;
    let serve = async {
        let (mut one, mut two) = (bench.accept().await, bench.accept().await);
        one.answer(OK).await;
        two.answer(OK).await;
        (one, two)
    };
    let (first, second, (mut unneeded, mut used)) = tokio::join!(post(&bench.upstream), post(&bench.upstream), serve);
    drop((first, second));
    for _ in 0..2 {
        bench.clock.advance(Duration::from_secs(3));
        assert!(bench.is_reused(&mut used).await);
    }
    unneeded.closed().await;
}

/// L1: a kept connection that was closed meanwhile is noticed, and the request goes over a new one.
#[tokio::test]
async fn a_dead_kept_connection_is_replaced() {
    let bench = Bench::new().await;
    let (_, served) = bench.first(OK).await;
    drop(served);
    bench.notice().await;
    let (response, _) = bench.first(OK).await;
    assert_eq!(text(response).await, "{}");
}

/// L1: bytes that nobody asked for are never taken for the next answer.
#[tokio::test]
async fn unasked_answers_are_not_handed_on() {
    let bench = Bench::new().await;
    let (_, mut served) = bench.first(OK).await;
    served.send("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged").await;
    bench.notice().await;
    assert!(!bench.is_reused(&mut served).await);
}

/// L1: a request of which nothing was written comes back for another try.
#[tokio::test]
async fn an_unsent_request_is_given_back() {
    let bench = Bench::new().await;
    let (link, served) = tokio::join!(bench.upstream.0.connect(), bench.accept());
    let link = link.unwrap();
    drop(served);
    bench.notice().await;
    let request = Request::new(Full::new(Bytes::from_static(b"again")));
    let Err(SendError::NotSent(request, _)) = link.send(request).await else { panic!("it was sent") };
    assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), "again");
}

/// L1: a request that was sent is not sent again, whatever became of it.
#[tokio::test]
async fn a_sent_request_is_not_repeated() {
    let bench = Bench::new().await;
    let (_, mut served) = bench.first(OK).await;
    let serve = async {
        served.request().await.unwrap();
        drop(served);
        std::future::pending::<()>().await;
    };
    let response = tokio::select! {
        response = post(&bench.upstream) => response,
        () = serve => unreachable!(),
        _ = bench.accept() => panic!("it was sent twice"),
    };
    assert_eq!(refused(response).await.1, "upstream.no_answer");
}

/// L1: an upstream's 401 becomes a generic 502; its 403 stays, without a challenge.
#[tokio::test]
async fn refusals_of_the_upstream() {
    let bench = Bench::new().await;
    let challenge = "www-authenticate: Bearer realm=\"other\"\r\ncontent-length: 6\r\n\r\nsecret";
    let (response, mut served) = bench.first(&format!("HTTP/1.1 401 Unauthorized\r\n{challenge}")).await;
    assert!(!response.headers().contains_key("www-authenticate"));
    let (status, code, _, body) = refused(response).await;
    assert_eq!((status, code), (502, "upstream.unauthorized"));
    assert!(!body.contains("secret"));
    assert!(bench.is_reused(&mut served).await);

    let bench = Bench::new().await;
    let (response, _) = bench.first(&format!("HTTP/1.1 403 Forbidden\r\n{challenge}")).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key("www-authenticate"));
    assert_eq!(text(response).await, "secret");
}

/// L1: a length that the upstream said beside another framing is not handed on (RFC 9112 section 6.3).
#[tokio::test]
async fn contradictory_lengths_stay_behind() {
    let bench = Bench::new().await;
    let both = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let (response, _served) = bench.first(both).await;
    assert!(!response.headers().contains_key("content-length"), "{:?}", response.headers());
    assert_eq!(text(response).await, "{}");
}

/// L1: a change of protocol is not handed on.
#[tokio::test]
async fn switched_protocols() {
    let bench = Bench::new().await;
    let (response, _) =
        bench.first("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n").await;
    assert_eq!(refused(response).await.1, "upstream.switching_protocols");
}

/// L1: dropping an answer closes the connection that it comes over; so does giving up before its head.
#[tokio::test]
async fn dropping_closes_the_connection() {
    let bench = Bench::new().await;
    let (mut response, mut served) = bench.first(STREAM_HEAD).await;
    served.send("3\r\n:1\n\r\n").await;
    event(&mut response).await;
    drop(response);
    served.closed().await;

    let mut call = Box::pin(post(&bench.upstream));
    let mut served = tokio::select! {
        _ = &mut call => unreachable!(),
        served = async {
            let mut served = bench.accept().await;
            served.request().await.unwrap();
            served
        } => served,
    };
    drop(call);
    served.closed().await;
}

/// L1: an answer that breaks off ends with an error, not as if it were whole.
#[tokio::test]
async fn broken_answers_are_errors() {
    for head in [STREAM_HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"] {
        let bench = Bench::new().await;
        let (response, mut served) = bench.first(head).await;
        served.send("3\r\n:1\n\r\n").await;
        drop(served);
        let error = response.into_body().collect().await.unwrap_err();
        assert_eq!(error.code(), "upstream.body_broken");
    }
}

/// J1: an upstream that cannot be reached, or does not speak HTTP, is a generic 502 with a reason code.
#[tokio::test]
async fn unusable_upstreams() {
    let address = Bench::new().await.listener.local_addr().unwrap();
    let gone = upstream(address, &ManualClock::new(), |_| {});
    let (status, code, content_type, body) = refused(post(&gone).await).await;
    assert_eq!((status, code, content_type.as_str()), (502, "upstream.unreachable", "application/json"));
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&body["error"]["code"], &body["id"]), (&(-32603).into(), &serde_json::Value::Null));
    let (status, _, content_type, body) = refused(call(&gone, Method::GET, "").await).await;
    assert_eq!((status, content_type.as_str()), (502, "text/plain"));
    assert!(!body.contains("127.0.0.1"));

    for garbage in ["SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n"] {
        let bench = Bench::new().await;
        let (response, _) = bench.first(garbage).await;
        assert_eq!(refused(response).await.1, "upstream.no_answer", "{garbage}");
    }
}

/// L1: connecting and, where set, the head of the answer have a limit of time.
#[tokio::test]
async fn slow_upstreams() {
    // A listener whose queue is full leaves further connections waiting.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let _first = TcpStream::connect(address).await.unwrap();
    let _second = TcpStream::connect(address).await.unwrap();
    tokio::time::pause();
    let slow = upstream(address, &ManualClock::new(), |_| {});
    let (status, code, ..) = refused(post(&slow).await).await;
    assert_eq!((status, code), (504, "upstream.connect_timeout"));

    let bench = Bench::with(|settings| {
        settings.connect_timeout = Duration::from_secs(3600);
        settings.head_timeout = Some(Duration::from_secs(10));
    })
    .await;
    let serve = async {
        let mut served = bench.accept().await;
        served.request().await.unwrap();
        served.closed().await;
    };
    let (response, ()) = tokio::join!(post(&bench.upstream), serve);
    let (status, code, ..) = refused(response).await;
    assert_eq!((status, code), (504, "upstream.head_timeout"));
}

/// L1: a unix socket serves like a TCP port.
#[tokio::test]
async fn unix_sockets() {
    let path = std::env::temp_dir().join(format!("portcullis-gateway-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let uri = Url::parse("http://tools.internal/mcp").unwrap();
    let settings = HttpUpstreamSettings::new(Address::Unix { path: path.clone(), uri });
    let upstream = HttpUpstream::new(settings, Arc::new(ManualClock::new())).unwrap();
    let serve = async {
        let mut served = Served(listener.accept().await.unwrap().0);
        let first = served.answer(OK).await;
        served.answer(OK).await;
        first
    };
    let calls = async { [text(post(&upstream).await).await, text(post(&upstream).await).await] };
    let (answers, request) = tokio::join!(calls, serve);
    assert_eq!(answers, ["{}", "{}"]);
    assert!(request.starts_with("POST /mcp HTTP/1.1\r\n") && request.contains("host: tools.internal\r\n"));
    drop(listener);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(refused(post(&upstream).await).await.1, "upstream.unreachable");
}

/// E9: the upstream is told of a session that ended here, and not waited for without end.
#[tokio::test]
async fn ended_sessions_are_told() {
    let bench = Bench::new().await;
    let header = HeaderName::from_static("mcp-session-id");
    let serve = async {
        let mut served = bench.accept().await;
        (served.answer("HTTP/1.1 204 No Content\r\n\r\n").await, served)
    };
    let (status, (request, mut served)) =
        tokio::join!(bench.upstream.end_session(header.clone(), b"backend-id"), serve);
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(request.starts_with("DELETE /mcp HTTP/1.1\r\n") && request.contains("mcp-session-id: backend-id\r\n"));

    assert_eq!(bench.upstream.end_session(header.clone(), b"two\r\nlines").await, StatusCode::BAD_REQUEST);

    tokio::time::pause();
    let silent = async {
        served.request().await.unwrap();
        served.closed().await;
    };
    let (status, ()) = tokio::join!(bench.upstream.end_session(header, b"backend-id"), silent);
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
}

#[test]
fn everything_is_send() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<HttpUpstream>();
    is_sync::<HttpUpstream>();
    is_send::<UpstreamBody>();
    is_send::<AnswerFuture>();
}
