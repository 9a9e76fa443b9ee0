//! Upstreams that announce a body which the response cannot have and send it after the next
//! request. Another user must not receive it as a response.

use portcullis_scenarios::{
    Connection, Deployment, RawRequest, RawUpstream, Request, modern_request,
};
use serde_json::json;

const LATE: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"late\"}";
const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"good\"}";

/// Sends `first` as the response to the first request of a connection, and late bytes after the
/// next request.
async fn upstream(first: &'static str) -> RawUpstream {
    RawUpstream::scripted(move |request: &RawRequest| {
        let response = match request.earlier {
            0 if request.head.contains("x-first") => first,
            0 => GOOD,
            _ => LATE,
        };
        Some(response.into())
    })
    .await
}

async fn start(upstream: &RawUpstream) -> Deployment {
    Deployment::builder()
        .upstream_setting(upstream.setting())
        .start()
        .await
}

fn request(token: &str) -> Request {
    modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(token)
}

/// L10: a connection is not reused after a response that announces a body without having one, or
/// whose length is not one plain number. The next request of another user gets its own response.
#[tokio::test]
async fn late_bytes_reach_no_other_client() {
    for (first, status) in [
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: 111\r\n\r\n",
            204,
        ),
        (
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
            204,
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
            304,
        ),
        (
            "HTTP/1.1 103 Early Hints\r\nContent-Length: 111\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            204,
        ),
        (
            "HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            204,
        ),
        (
            "HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\n{}",
            205,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            200,
        ),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", 200),
    ] {
        let upstream = upstream(first).await;
        let deployment = start(&upstream).await;
        let mallory = deployment.token().subject("mallory").sign();
        let alice = deployment.token().subject("alice").sign();
        // One client connection uses one worker, and so one set of upstream connections.
        let mut client = Connection::open(deployment.portcullis.address()).await;
        let response = client.send(&request(&mallory).header("X-First", "1")).await;
        assert_eq!(response.status, status, "{first}: {response:?}");
        let response = client.send(&request(&alice)).await;
        assert_eq!(response.status, 200, "{first}");
        assert_eq!(response.json()["result"], "good", "{first}");
    }
}

/// After a response with one plain length, the connection is reused: its late bytes are the
/// response to the next request.
#[tokio::test]
async fn other_connections_are_reused() {
    let upstream = upstream("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
    let deployment = start(&upstream).await;
    let token = deployment.good_token();
    let mut client = Connection::open(deployment.portcullis.address()).await;
    assert_eq!(
        client
            .send(&request(&token).header("X-First", "1"))
            .await
            .status,
        200
    );
    assert_eq!(client.send(&request(&token)).await.json()["result"], "late");
}

/// L10: the client gets one plain number as the length, for every form of the upstream's header.
#[tokio::test]
async fn lengths_are_plain_numbers() {
    for lines in [
        "Content-Length: 2, 2",
        "Content-Length: 2\r\nContent-Length: 2",
        "Content-Length: 002",
        "Content-Length: 2 ,02",
    ] {
        let response =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{lines}\r\n\r\n{{}}");
        let upstream = RawUpstream::scripted(move |_| Some(response.clone().into())).await;
        let deployment = start(&upstream).await;
        let response = deployment.send(request(&deployment.good_token())).await;
        let lengths: Vec<_> = response
            .headers
            .iter()
            .filter(|(name, _)| name == "content-length")
            .map(|(_, value)| value)
            .collect();
        assert_eq!(lengths, ["2"], "{lines}: {response:?}");
        assert_eq!(response.text(), "{}");
    }
}
