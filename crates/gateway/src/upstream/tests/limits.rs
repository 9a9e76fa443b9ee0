//! The connection limit, the head timeout, late bytes and redirects.

use super::*;
use crate::ConnectionLimit;

fn limited(max: usize) -> impl FnOnce(&mut HttpUpstreamSettings) {
    move |settings| settings.connection_limit = ConnectionLimit::new(max)
}

/// L9: a request above the connection limit gets 503 immediately, and nothing reaches the upstream.
#[tokio::test]
async fn connections_are_limited() {
    let test_upstream = TestUpstream::with(limited(1)).await;
    let (held, mut served) = test_upstream.answer_first(STREAM_HEAD).await;
    let response = post(&test_upstream.upstream).await;
    assert_eq!(response.headers()["retry-after"], "1");

    let to_post = failure(response).await;
    assert_eq!(to_post.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(to_post.code, "upstream.too_many_connections");
    assert_eq!(to_post.content_type, "application/json");
    assert!(to_post.body.contains("-32603"), "{}", to_post.body);

    let to_get = failure(call(&test_upstream.upstream, Method::GET, "").await).await;
    assert_eq!(to_get.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(to_get.content_type, "text/plain");

    // When one ends, another one can be opened.
    drop(held);
    served.closed().await;
    let (response, mut served) = test_upstream.answer_first(OK).await;
    assert_eq!(text(response).await, "{}");

    // An idle connection is reused.
    assert!(test_upstream.is_reused(&mut served).await);
}

/// L9: idle connections of another worker do not prevent a new connection.
#[tokio::test]
async fn idle_connections_of_other_workers_are_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limit = ConnectionLimit::new(2);
    let clock = ManualClock::new();
    let [one, other] = [(); 2].map(|()| {
        upstream(address, &clock, |settings| {
            settings.connection_limit = limit.clone()
        })
    });
    let answered = async |worker: &HttpUpstream| {
        let serve = async {
            let mut served = Served(listener.accept().await.unwrap().0);
            served.respond(OK).await;
            served
        };
        let (response, served) = tokio::join!(post(worker), serve);
        assert_eq!(text(response).await, "{}");
        served
    };
    let mut oldest = answered(&one).await;
    let held = {
        // Both connections of the first worker are in use at the same time, and then idle.
        let first = async { oldest.respond(OK).await };
        let (second, served, ..) = tokio::join!(post(&one), answered(&one), first);
        assert_eq!(text(second).await, "{}");
        served
    };
    let _fresh = answered(&other).await;
    oldest.closed().await;
    drop(held);
}

/// L9: without a head in time the client gets 504, on an idle connection as on a new one, and the
/// connection is closed. A stream whose head has arrived can take longer.
#[tokio::test]
async fn heads_have_a_time_limit() {
    let test_upstream =
        TestUpstream::with(|settings| settings.head_timeout = Duration::from_secs(60)).await;
    let (response, mut served) = test_upstream.answer_first(OK).await;
    assert_eq!(text(response).await, "{}");
    tokio::time::pause();
    let silent = async {
        served.request().await.unwrap();
        served.closed().await;
    };
    let started = tokio::time::Instant::now();
    let (response, ()) = tokio::join!(post(&test_upstream.upstream), silent);
    let waited = started.elapsed();
    assert_eq!(failure(response).await.code, "upstream.head_timeout");
    assert!(
        (60_000..=61_100).contains(&waited.as_millis()),
        "{waited:?}"
    );

    tokio::time::resume();
    let (mut response, mut served) = test_upstream.answer_first(STREAM_HEAD).await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(120)).await;
    tokio::time::resume();
    served.send("3\r\n:1\n\r\n").await;
    assert_eq!(event(&mut response).await, ":1\n");
}

/// L10: bytes of a body that the response cannot have are never used as the next response.
#[tokio::test]
async fn late_bytes_are_not_the_next_response() {
    for head in [
        "HTTP/1.1 204 No Content\r\ncontent-length: 44\r\n\r\n",
        "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\ncontent-length: 44\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\ntransfer-encoding: chunked\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 205 Reset Content\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-length: 02\r\n\r\n{}",
        "HTTP/1.1 200 OK\ncontent-length: 2\r\n\r\n{}",
    ] {
        let test_upstream = TestUpstream::new().await;
        let (response, mut served) = test_upstream.answer_first(head).await;
        if response.status() == StatusCode::NO_CONTENT {
            assert!(!response.headers().contains_key("content-length"), "{head}");
        }
        text(response).await;
        assert!(!test_upstream.is_reused(&mut served).await, "{head}");
    }
    for head in [
        "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 44\r\n\r\n",
    ] {
        let test_upstream = TestUpstream::new().await;
        let (_, mut served) = test_upstream.answer_first(head).await;
        assert!(test_upstream.is_reused(&mut served).await, "{head}");
    }
}

/// L10: a redirect becomes a generic 502 without its target.
#[tokio::test]
async fn redirects() {
    let test_upstream = TestUpstream::new().await;
    let (response, _) = test_upstream
        .answer_first("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://10.0.0.1/mcp/\r\ncontent-length: 0\r\n\r\n")
        .await;
    assert!(!response.headers().contains_key("location"));
    let failure = failure(response).await;
    assert_eq!(failure.status, StatusCode::BAD_GATEWAY);
    assert_eq!(failure.code, "upstream.redirect");
    assert!(!failure.body.contains("10.0.0.1"), "{}", failure.body);
}
