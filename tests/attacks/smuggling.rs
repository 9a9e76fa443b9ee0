//! Request smuggling: requests whose end two parsers could find in different places (RFC 9112
//! sections 6.3 and 11.2).

use portcullis_scenarios::{Connection, Deployment, INITIALIZE, Request, send_bytes};

/// F4: malformed or contradictory framing is rejected and the connection is closed, so no following
/// bytes are read as a request.
#[tokio::test]
async fn malformed_framing() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let smuggled = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(&good)
        .to_bytes();
    let post = |lines: &str, body: &str| {
        let head = Request::post(Deployment::ENDPOINT, "")
            .bearer(&good)
            .without_length()
            .raw_lines(lines)
            .to_bytes();
        [&head[..], body.as_bytes(), &smuggled].concat()
    };
    for (case, bytes) in [
        (
            "two lengths",
            post("Content-Length: 4\r\nContent-Length: 5\r\n", "abcd"),
        ),
        (
            "a list of lengths",
            post("Content-Length: 4, 5\r\n", "abcd"),
        ),
        ("a signed length", post("Content-Length: +4\r\n", "abcd")),
        ("a negative length", post("Content-Length: -4\r\n", "abcd")),
        (
            "a hexadecimal length",
            post("Content-Length: 0x4\r\n", "abcd"),
        ),
        ("a fraction", post("Content-Length: 4.0\r\n", "abcd")),
        (
            "an overflow",
            post("Content-Length: 18446744073709551617\r\n", "a"),
        ),
        ("an empty length", post("Content-Length: \r\n", "abcd")),
        (
            "an unknown coding",
            post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        ),
        ("identity", post("Transfer-Encoding: identity\r\n", "abcd")),
        (
            "chunked not last",
            post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"),
        ),
        (
            "chunked, then identity",
            post(
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
                "0\r\n\r\n",
            ),
        ),
        (
            "a space before the colon",
            post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        ),
        (
            "a folded line",
            post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
        ),
        (
            "a control byte",
            post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"),
        ),
        (
            "an invalid chunk size",
            post("Transfer-Encoding: chunked\r\n", "zz\r\nabcd\r\n0\r\n\r\n"),
        ),
        (
            "a signed chunk size",
            post("Transfer-Encoding: chunked\r\n", "+4\r\nabcd\r\n0\r\n\r\n"),
        ),
        (
            "a prefixed chunk size",
            post("Transfer-Encoding: chunked\r\n", "0x4\r\nabcd\r\n0\r\n\r\n"),
        ),
        (
            "an overflowing chunk size",
            post(
                "Transfer-Encoding: chunked\r\n",
                "10000000000000004\r\nabcd\r\n0\r\n\r\n",
            ),
        ),
        (
            "a chunk without its end",
            post("Transfer-Encoding: chunked\r\n", "4\r\nabcdXX0\r\n\r\n"),
        ),
    ] {
        let mut connection = Connection::open(deployment.portcullis.address()).await;
        let response = connection.exchange(&bytes).await;
        assert_eq!(response.status, 400, "{case}: {response:?}");
        connection.assert_closed().await;
        assert!(
            deployment.upstream.recorded().is_empty(),
            "{case}: a request reached the upstream"
        );
    }
}

/// F4: the chunked coding is rejected on HTTP/1.0, which does not have it.
#[tokio::test]
async fn chunked_on_http_1_0() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let bytes = format!(
        "POST /mcp HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {good}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
    let response = send_bytes(deployment.portcullis.address(), bytes.as_bytes()).await;
    assert_eq!(response.status, 400, "{response:?}");
    assert!(deployment.upstream.recorded().is_empty());
}

/// F4: a request with both a length and the chunked coding is rejected, or only the coding is used.
/// The upstream gets one request with one length, and following bytes are checked as a separate
/// request.
#[tokio::test]
async fn a_length_and_the_chunked_coding() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let chunked = format!("{:x}\r\n{INITIALIZE}\r\n0\r\n\r\n", INITIALIZE.len());
    let smuggled = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .header("X-Smuggled", "1")
        .to_bytes();
    for lines in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 99999\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let head = Request::post(Deployment::ENDPOINT, "")
            .bearer(&good)
            .without_length()
            .raw_lines(lines)
            .to_bytes();
        let before = deployment.upstream.count();
        let mut connection = Connection::open(deployment.portcullis.address()).await;
        let response = connection
            .exchange(&[&head[..], chunked.as_bytes(), &smuggled].concat())
            .await;
        assert!(
            matches!(response.status, 200 | 400 | 415),
            "{lines}: {response:?}"
        );
        if response.status == 200 {
            let seen = deployment.upstream.last();
            assert_eq!(
                seen.header("content-length"),
                Some(INITIALIZE.len().to_string().as_str()),
                "{lines}"
            );
            assert_eq!(seen.header("transfer-encoding"), None, "{lines}");
            assert_eq!(seen.body, INITIALIZE, "{lines}");
        }
        if let Some(second) = connection.response().await {
            assert_eq!(
                second.assert_unauthorized(),
                None,
                "{lines}: the following bytes are a request without a token"
            );
        }
        assert!(deployment.upstream.count() <= before + 1, "{lines}");
        assert!(
            deployment
                .upstream
                .recorded()
                .iter()
                .all(|seen| !seen.headers.contains_key("x-smuggled")),
            "{lines}"
        );
    }
}

/// F4: responses to pipelined requests are in order, and each request needs its own token.
#[tokio::test]
async fn pipelined_requests() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let with = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(&good)
        .to_bytes();
    let without = Request::post(Deployment::ENDPOINT, INITIALIZE).to_bytes();
    let mut connection = Connection::open(deployment.portcullis.address()).await;
    let first = connection
        .exchange(&[&with[..], &without[..], &with[..]].concat())
        .await;
    assert_eq!(first.status, 200, "{first:?}");
    let second = connection.response().await.unwrap();
    assert_eq!(
        second.assert_unauthorized(),
        None,
        "a connection is not authenticated: {second:?}"
    );
    assert_eq!(
        deployment.upstream.count(),
        1,
        "the bytes after an unread body are not read"
    );
}

/// L1: hop-by-hop headers and those that `Connection` names are not forwarded, and cannot remove
/// the gateway's own headers.
#[tokio::test]
async fn hop_by_hop_headers() {
    let deployment = Deployment::start().await;
    let request = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(&deployment.good_token())
        .header("Connection", "keep-alive, X-Portcullis-Subject, X-Request-Id, X-Forwarded-For, Content-Type2, X-Named")
        .header("X-Named", "1")
        .header("Keep-Alive", "timeout=5")
        .header("Proxy-Connection", "keep-alive")
        .header("TE", "trailers")
        .header("Trailer", "X-T")
        .header("Upgrade", "h2c")
        .header("HTTP2-Settings", "AAMAAABkAAQAAP__")
        .header("Expect", "100-continue");
    let response = deployment.send(request).await;
    assert_eq!(response.status, 200, "{response:?}");

    let seen = deployment.upstream.last();
    for name in [
        "x-named",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
        "expect",
    ] {
        assert_eq!(seen.header(name), None, "{name}: {seen:?}");
    }
    assert_eq!(seen.header("x-portcullis-subject"), Some("alice"));
    assert_eq!(seen.header("x-request-id"), response.header("x-request-id"));
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"));
}
