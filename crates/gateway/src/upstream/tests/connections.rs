use super::*;

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
    let bench = Bench::with(|settings| settings.max_idle_connections = 1).await;
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

    let bench = Bench::with(|settings| settings.max_idle_connections = 0).await;
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
    let (connection, served) = tokio::join!(bench.upstream.0.connect(), bench.accept());
    let connection = connection.unwrap();
    drop(served);
    bench.notice().await;
    let request = RequestBuilder::new(&Method::POST, &PathAndQuery::from_static("/mcp"));
    let error = connection.send(request.body(Bytes::from_static(b"again"))).await.unwrap_err();
    let SendError { unsent: Some(request), .. } = error else { panic!("it was sent") };
    assert!(request.to_vec().ends_with(b"again"));
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

/// L1: a unix socket serves like a TCP port.
#[tokio::test]
async fn unix_sockets() {
    let path = std::env::temp_dir().join(format!("portcullis-gateway-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let uri = Url::parse("http://tools.internal/mcp").unwrap();
    let settings = HttpUpstreamSettings::new(UpstreamAddress::Unix { path: path.clone(), uri });
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

/// L1: bytes behind the end of an answer are not the beginning of the next.
#[tokio::test]
async fn answers_with_something_behind_them_end_their_connection() {
    let bench = Bench::new().await;
    let (response, mut served) = bench.first(&format!("{OK}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")).await;
    assert_eq!(text(response).await, "{}");
    assert!(!bench.is_reused(&mut served).await);

    let bench = Bench::new().await;
    let (response, mut served) = bench.first(&format!("{STREAM_HEAD}2\r\n{{}}\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n")).await;
    assert_eq!(text(response).await, "{}");
    assert!(!bench.is_reused(&mut served).await);
}

/// L1: a connection on which two framings were said, or another protocol, is not used again.
#[tokio::test]
async fn connections_that_cannot_be_trusted_are_not_kept() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ] {
        let bench = Bench::new().await;
        let (response, mut served) = bench.first(answer).await;
        text(response).await;
        assert!(!bench.is_reused(&mut served).await, "{answer}");
    }
}
