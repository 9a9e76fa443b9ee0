//! Responses are forwarded as a stream; broken, slow and missing ones are errors.

use super::*;

/// The size of a body that no buffer of a socket holds.
const LARGE: usize = 32 << 20;

/// The maximum number of interim responses before a response.
const MAX_INTERIM_RESPONSES: usize = 16;

/// C12, L1: the request is forwarded without the caller's credentials, and the response is
/// returned.
#[tokio::test]
async fn a_request_and_its_response() {
    let test_upstream = TestUpstream::new().await;
    let serve = async { test_upstream.accept().await.respond(OK).await };
    let (response, request) = tokio::join!(post(&test_upstream.upstream), serve);
    let (line, rest) = request.split_once("\r\n").unwrap();
    assert_eq!(line, "POST /mcp HTTP/1.1");
    assert!(rest.contains("x-request-id: made-here\r\n"), "{rest}");
    assert!(rest.ends_with("\r\n\r\n{}"), "{rest}");
    assert!(
        rest.contains(&format!(
            "host: {}\r\n",
            test_upstream.listener.local_addr().unwrap()
        )),
        "{rest}"
    );
    assert!(!request.contains(CANARY), "{request}");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert!(response.extensions().is_empty());
    assert_eq!(text(response).await, "{}");
}

/// L1: each event is forwarded before the upstream sends the next one.
#[tokio::test]
async fn events_are_streamed_one_by_one() {
    let test_upstream = TestUpstream::new().await;
    let (mut response, mut served) = test_upstream.answer_first(STREAM_HEAD).await;
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    for number in 0..3 {
        served.send(&format!("9\r\ndata: {number}\n\n\r\n")).await;
        assert_eq!(event(&mut response).await, format!("data: {number}\n\n"));
    }
    served.send("0\r\n\r\n").await;
    assert!(response.body_mut().frame().await.is_none());
    assert!(test_upstream.is_reused(&mut served).await);
}

/// L1: an upstream's 401 becomes a generic 502; its 403 stays, without a challenge.
#[tokio::test]
async fn rejections_of_the_upstream() {
    let test_upstream = TestUpstream::new().await;
    let challenge = "www-authenticate: Bearer realm=\"other\"\r\ncontent-length: 6\r\n\r\nsecret";
    let (response, mut served) = test_upstream
        .answer_first(&format!("HTTP/1.1 401 Unauthorized\r\n{challenge}"))
        .await;
    assert!(!response.headers().contains_key("www-authenticate"));

    let failure = failure(response).await;
    assert_eq!(failure.status, StatusCode::BAD_GATEWAY);
    assert_eq!(failure.code, "upstream.unauthorized");
    assert!(!failure.body.contains("secret"), "{}", failure.body);
    assert!(test_upstream.is_reused(&mut served).await);

    let test_upstream = TestUpstream::new().await;
    let (response, _) = test_upstream
        .answer_first(&format!("HTTP/1.1 403 Forbidden\r\n{challenge}"))
        .await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key("www-authenticate"));
    assert_eq!(text(response).await, "secret");
}

/// L1: a length together with another framing is not forwarded (RFC 9112 section 6.3).
#[tokio::test]
async fn contradictory_lengths_are_removed() {
    let test_upstream = TestUpstream::new().await;
    let both = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let (response, _served) = test_upstream.answer_first(both).await;
    assert!(
        !response.headers().contains_key("content-length"),
        "{:?}",
        response.headers()
    );
    assert_eq!(text(response).await, "{}");
}

/// L1: 101 Switching Protocols is not forwarded.
#[tokio::test]
async fn switched_protocols() {
    let test_upstream = TestUpstream::new().await;
    let (response, _) = test_upstream
        .answer_first(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        )
        .await;
    assert_eq!(failure(response).await.code, "upstream.switching_protocols");
}

/// L1: an incomplete body ends with an error.
#[tokio::test]
async fn broken_responses_are_errors() {
    for head in [STREAM_HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"] {
        let test_upstream = TestUpstream::new().await;
        let (response, mut served) = test_upstream.answer_first(head).await;
        served.send("3\r\n:1\n\r\n").await;
        drop(served);
        let error = response.into_body().collect().await.unwrap_err();
        assert_eq!(error.code(), "upstream.body_broken");
    }
}

/// J1: an upstream that cannot be reached, or does not speak HTTP, is a generic 502 with a reason
/// code.
#[tokio::test]
async fn unusable_upstreams() {
    // The socket has the port and does not listen, so that no other test can get it.
    let unreachable = bound_socket();
    let unreachable = upstream(
        unreachable.local_addr().unwrap(),
        &ManualClock::new(),
        |_| {},
    );
    let to_post = failure(post(&unreachable).await).await;
    assert_eq!(to_post.status, StatusCode::BAD_GATEWAY);
    assert_eq!(to_post.code, "upstream.unreachable");
    assert_eq!(to_post.content_type, "application/json");

    let body: serde_json::Value = serde_json::from_str(&to_post.body).unwrap();
    assert_eq!(body["error"]["code"], -32603);
    assert_eq!(body["id"], serde_json::Value::Null);
    let to_get = failure(call(&unreachable, Method::GET, "").await).await;
    assert_eq!(to_get.status, StatusCode::BAD_GATEWAY);
    assert_eq!(to_get.content_type, "text/plain");
    assert!(!to_get.body.contains("127.0.0.1"), "{}", to_get.body);

    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n",
    ] {
        let test_upstream = TestUpstream::new().await;
        let (response, _) = test_upstream.answer_first(garbage).await;
        assert_eq!(
            failure(response).await.code,
            "upstream.no_answer",
            "{garbage}"
        );
    }
}

/// L1: connecting has a time limit. Linux leaves connections waiting if the queue of a listener is
/// full; other systems can refuse them.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connecting_has_a_time_limit() {
    let listener = bound_socket().listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let _first = TcpStream::connect(address).await.unwrap();
    let _second = TcpStream::connect(address).await.unwrap();
    tokio::time::pause();
    let full = upstream(address, &ManualClock::new(), |_| {});
    let failure = failure(post(&full).await).await;
    assert_eq!(failure.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(failure.code, "upstream.connect_timeout");
}

/// L1: the head of the response has a time limit.
#[tokio::test(start_paused = true)]
async fn the_head_of_the_response_has_a_time_limit() {
    let test_upstream = TestUpstream::with(|settings| {
        // While the runtime waits for the socket, the paused clock advances to the next timer. It
        // must not be this one.
        settings.connect_timeout = Duration::from_secs(3600);
        settings.head_timeout = Duration::from_secs(10);
    })
    .await;
    let serve = async {
        let mut served = test_upstream.accept().await;
        served.request().await.unwrap();
        served.closed().await;
    };
    let (response, ()) = tokio::join!(post(&test_upstream.upstream), serve);
    let failure = failure(response).await;
    assert_eq!(failure.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(failure.code, "upstream.head_timeout");
}

/// L1: a large request body is sent while the response is already received. Neither waits for the
/// other.
#[tokio::test]
async fn large_bodies_go_both_ways_at_once() {
    const SIZE: usize = 8 << 20;
    let test_upstream = TestUpstream::new().await;
    let body = Bytes::from((0..SIZE).map(|i| (i % 251) as u8).collect::<Vec<_>>());
    let echo = async {
        let Served(mut stream) = test_upstream.accept().await;
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\n") {
            read.push(stream.read_u8().await.unwrap());
        }
        assert!(
            String::from_utf8(read)
                .unwrap()
                .contains(&format!("content-length: {SIZE}\r\n"))
        );
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {SIZE}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut (&mut from).take(SIZE as u64), &mut to)
            .await
            .unwrap();
        Served(stream)
    };
    let call = async {
        send(&test_upstream.upstream, Method::POST, body.clone())
            .await
            .into_body()
            .collect()
            .await
            .unwrap()
    };
    let (echoed, mut served) = tokio::join!(call, echo);
    assert_eq!(echoed.to_bytes(), body);
    assert!(test_upstream.is_reused(&mut served).await);
}

/// L1: a response before the end of the request is returned, and the connection is closed.
#[tokio::test]
async fn early_responses_are_returned() {
    let test_upstream = TestUpstream::new().await;
    let serve = async {
        let mut served = test_upstream.accept().await;
        served.0.read_exact(&mut [0; 1024]).await.unwrap();
        served
            .send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nno!")
            .await;
        served
    };
    let (response, mut served) = tokio::join!(
        send(
            &test_upstream.upstream,
            Method::POST,
            vec![b'x'; LARGE].into()
        ),
        serve
    );
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text(response).await, "no!");
    // Only the bytes that the buffers of the sockets held follow.
    let sent_later = tokio::io::copy(&mut served.0, &mut tokio::io::sink())
        .await
        .unwrap();
    assert!(
        sent_later < LARGE as u64 / 2,
        "{sent_later} bytes were sent after the response"
    );
}

/// L1: a response to HEAD has no body, regardless of its length header.
#[tokio::test]
async fn responses_to_head_have_no_body() {
    let test_upstream = TestUpstream::new().await;
    let serve = async {
        let mut served = test_upstream.accept().await;
        served
            .respond("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
            .await;
        served
    };
    let (response, mut served) =
        tokio::join!(call(&test_upstream.upstream, Method::HEAD, ""), serve);
    assert_eq!(response.headers()["content-length"], "2");
    assert_eq!(text(response).await, "");
    assert!(test_upstream.is_reused(&mut served).await);
}

/// L1: a response without a length ends with its connection.
#[tokio::test]
async fn responses_that_end_with_their_connection() {
    let test_upstream = TestUpstream::new().await;
    let (response, mut served) = test_upstream
        .answer_first("HTTP/1.1 200 OK\r\n\r\nsome")
        .await;
    served.send(" more").await;
    drop(served);
    assert_eq!(text(response).await, "some more");
    test_upstream.answer_first(OK).await;
}

/// L1: interim responses are discarded, and their number is limited.
#[tokio::test]
async fn interim_responses_are_bounded() {
    let interim = |count| "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(count);
    let test_upstream = TestUpstream::new().await;
    let (response, _) = test_upstream
        .answer_first(&format!("{}{OK}", interim(MAX_INTERIM_RESPONSES)))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers().get("link"), None);

    let test_upstream = TestUpstream::new().await;
    let (response, _) = test_upstream
        .answer_first(&format!("{}{OK}", interim(MAX_INTERIM_RESPONSES + 1)))
        .await;
    assert_eq!(failure(response).await.code, "upstream.no_answer");
}

/// L1: data before a malformed chunk is forwarded, followed by an error.
#[tokio::test]
async fn responses_that_are_framed_wrongly_are_errors() {
    let test_upstream = TestUpstream::new().await;
    let (mut response, _served) = test_upstream
        .answer_first(&format!("{STREAM_HEAD}2\r\n:\n\r\nnonsense\r\n"))
        .await;
    assert_eq!(event(&mut response).await, ":\n");
    let error = response.body_mut().frame().await.unwrap().unwrap_err();
    assert_eq!(error.code(), "upstream.body_broken");
    assert!(response.body_mut().frame().await.is_none());
}

/// Returns a socket that has a port of its own and does not listen yet.
fn bound_socket() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}
