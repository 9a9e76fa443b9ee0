//! Connections are reused only after a complete response, and requests are not repeated.

use portcullis_testkit::ScratchDirectory;
use tokio::sync::Notify;

use super::*;

/// L1: connections are reused after responses of any framing.
#[tokio::test]
async fn connections_are_pooled() {
    let heads = [
        OK,
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-trailer: 1\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ];
    for head in heads {
        let test_upstream = TestUpstream::new().await;
        let (response, mut served) = test_upstream.answer_first(head).await;
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            assert!(frame.unwrap().is_data());
        }
        assert!(test_upstream.is_reused(&mut served).await, "{head}");
        assert!(test_upstream.is_reused(&mut served).await, "{head}");
    }
}

/// L1: a connection can be reused as soon as the complete response has arrived, even if it is not
/// read.
#[tokio::test]
async fn a_complete_response_frees_its_connection_at_once() {
    let test_upstream = TestUpstream::new().await;
    let (unread, mut served) = test_upstream.answer_first(OK).await;
    assert!(test_upstream.is_reused(&mut served).await);
    assert_eq!(text(unread).await, "{}");
}

/// Sends two requests at the same time. Returns their connections in the order in which they became
/// idle.
async fn two_connections(test_upstream: &TestUpstream) -> [Served<TcpStream>; 2] {
    let read = Notify::new();
    let call = async || {
        assert_eq!(text(post(&test_upstream.upstream).await).await, "{}");
        read.notify_one();
    };
    let serve = async {
        let mut one = test_upstream.accept().await;
        let mut two = test_upstream.accept().await;
        one.respond(OK).await;
        read.notified().await;
        two.respond(OK).await;
        [one, two]
    };
    tokio::join!(call(), call(), serve).2
}

/// L1: concurrent requests use different connections.
#[tokio::test]
async fn concurrent_requests_do_not_share() {
    let test_upstream = TestUpstream::with(|settings| settings.max_idle_connections = 1).await;
    let [mut one, mut two] = two_connections(&test_upstream).await;
    // Only one is kept: the last one that became idle.
    one.closed().await;
    assert!(test_upstream.is_reused(&mut two).await);
}

/// L1: a connection that the upstream closes, or that was idle for too long, is not reused.
#[tokio::test]
async fn stale_connections_are_not_used() {
    let test_upstream = TestUpstream::new().await;
    let closing = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let (response, mut served) = test_upstream.answer_first(closing).await;
    assert!(!response.headers().contains_key("connection"));
    assert_eq!(text(response).await, "{}");
    assert!(!test_upstream.is_reused(&mut served).await);

    let test_upstream = TestUpstream::new().await;
    let (response, mut served) = test_upstream.answer_first(OK).await;
    drop(response);
    test_upstream.clock.advance(Duration::from_millis(3999));
    assert!(test_upstream.is_reused(&mut served).await);

    test_upstream.clock.advance(Duration::from_secs(4));
    assert!(!test_upstream.is_reused(&mut served).await);

    let test_upstream = TestUpstream::with(|settings| settings.max_idle_connections = 0).await;
    let (response, mut served) = test_upstream.answer_first(OK).await;
    drop(response);
    assert!(!test_upstream.is_reused(&mut served).await);
}

/// L1: expired idle connections are closed when another one is returned to the pool.
#[tokio::test]
async fn expired_connections_are_closed() {
    let test_upstream = TestUpstream::new().await;
    let [mut unneeded, mut used] = two_connections(&test_upstream).await;
    for _ in 0..2 {
        test_upstream.clock.advance(Duration::from_secs(3));
        assert!(test_upstream.is_reused(&mut used).await);
    }
    unneeded.closed().await;
}

/// L1: a closed idle connection is detected, and the request uses a new one.
#[tokio::test]
async fn a_closed_idle_connection_is_replaced() {
    let test_upstream = TestUpstream::new().await;
    let (_, served) = test_upstream.answer_first(OK).await;
    drop(served);
    test_upstream.notice().await;
    let (response, _) = test_upstream.answer_first(OK).await;
    assert_eq!(text(response).await, "{}");
}

/// L1: unsolicited bytes are never used as the next response.
#[tokio::test]
async fn unsolicited_responses_are_not_forwarded() {
    let test_upstream = TestUpstream::new().await;
    let (_, mut served) = test_upstream.answer_first(OK).await;
    served
        .send("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
        .await;
    test_upstream.notice().await;
    assert!(!test_upstream.is_reused(&mut served).await);
}

/// L1: a request of which nothing was written is returned for another attempt.
#[tokio::test]
async fn an_unsent_request_is_returned() {
    let test_upstream = TestUpstream::new().await;
    let (connection, served) =
        tokio::join!(test_upstream.upstream.0.connect(), test_upstream.accept());
    let connection = connection.unwrap();
    drop(served);
    test_upstream.notice().await;
    let request = RequestBuilder::new(&Method::POST, &PathAndQuery::from_static("/mcp"));
    let error = connection
        .send(request.body(Bytes::from_static(b"again")))
        .await
        .unwrap_err();
    let SendError {
        unsent: Some(request),
        ..
    } = error
    else {
        panic!("it was sent")
    };
    assert!(request.to_vec().ends_with(b"again"));
}

/// L1: a request that was sent is never sent again.
#[tokio::test]
async fn a_sent_request_is_not_repeated() {
    let test_upstream = TestUpstream::new().await;
    let (_, mut served) = test_upstream.answer_first(OK).await;
    let serve = async {
        served.request().await.unwrap();
        drop(served);
        std::future::pending::<()>().await;
    };
    let response = tokio::select! {
        response = post(&test_upstream.upstream) => response,
        () = serve => unreachable!(),
        _ = test_upstream.accept() => panic!("it was sent twice"),
    };
    assert_eq!(failure(response).await.code, "upstream.no_answer");
}

/// L1: dropping a response, or its future, closes the connection.
#[tokio::test]
async fn dropping_closes_the_connection() {
    let test_upstream = TestUpstream::new().await;
    let (mut response, mut served) = test_upstream.answer_first(STREAM_HEAD).await;
    served.send("3\r\n:1\n\r\n").await;
    event(&mut response).await;
    drop(response);
    served.closed().await;

    let mut call = Box::pin(post(&test_upstream.upstream));
    let mut served = tokio::select! {
        _ = &mut call => unreachable!(),
        served = async {
            let mut served = test_upstream.accept().await;
            served.request().await.unwrap();
            served
        } => served,
    };
    drop(call);
    served.closed().await;
}

/// L1: a Unix socket works like a TCP port.
#[tokio::test]
async fn unix_sockets() {
    let folder = ScratchDirectory::created();
    let path = folder.path().join("upstream.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let uri = Url::parse("http://tools.internal/mcp").unwrap();
    let settings = HttpUpstreamSettings::new(UpstreamAddress::Unix { path, uri });
    let upstream = HttpUpstream::new(settings, Arc::new(ManualClock::new())).unwrap();
    let serve = async {
        let mut served = Served(listener.accept().await.unwrap().0);
        let first = served.respond(OK).await;
        served.respond(OK).await;
        first
    };
    let calls = async {
        [
            text(post(&upstream).await).await,
            text(post(&upstream).await).await,
        ]
    };
    let (responses, request) = tokio::join!(calls, serve);
    assert_eq!(responses, ["{}", "{}"]);
    assert!(request.starts_with("POST /mcp HTTP/1.1\r\n"));
    assert!(request.contains("host: tools.internal\r\n"));

    drop(listener);
    assert_eq!(
        failure(post(&upstream).await).await.code,
        "upstream.unreachable"
    );
}

/// L1: bytes after the end of a response are not the start of the next one.
#[tokio::test]
async fn bytes_after_a_response_end_its_connection() {
    let test_upstream = TestUpstream::new().await;
    let (response, mut served) = test_upstream
        .answer_first(&format!(
            "{OK}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"
        ))
        .await;
    assert_eq!(text(response).await, "{}");
    assert!(!test_upstream.is_reused(&mut served).await);

    let test_upstream = TestUpstream::new().await;
    let (response, mut served) = test_upstream
        .answer_first(&format!(
            "{STREAM_HEAD}2\r\n{{}}\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"
        ))
        .await;
    assert_eq!(text(response).await, "{}");
    assert!(!test_upstream.is_reused(&mut served).await);
}

/// L1: a connection with contradictory framing, or with another protocol, is not reused.
#[tokio::test]
async fn ambiguous_connections_are_not_reused() {
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ] {
        let test_upstream = TestUpstream::new().await;
        let (response, mut served) = test_upstream.answer_first(head).await;
        text(response).await;
        assert!(!test_upstream.is_reused(&mut served).await, "{head}");
    }
}
