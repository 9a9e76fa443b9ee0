//! Request bodies: their limits, unreadable messages, and forwarding without changes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use serde_json::json;

use super::fixture::*;
use crate::BodyBudget;

fn pieces<const N: usize>(pieces: [Result<&'static str, &'static str>; N]) -> Pieces {
    Pieces(
        pieces
            .map(|piece| piece.map(|text| Bytes::from_static(text.as_bytes())))
            .into(),
    )
}

/// F4: a body over the limit is rejected by its declared length or by its actual length.
#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    let mut fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    fixture.settings.max_body = ping.len();
    let headers = [
        ("content-type", "application/json"),
        (SESSION, identifier.as_str()),
    ];
    assert_eq!(fixture.send("POST", &headers, ping).await.status, 200);

    let response = fixture.send("POST", &headers, format!("{ping} ")).await;
    assert_eq!(response.error(), (413, -32600));
    assert_eq!(response.json()["id"].clone(), json!(null));
    let cut = pieces([
        Ok("{\"jsonrpc\":\"2.0\",\"id\":1,"),
        Ok("\"method\":\"ping\"}"),
        Ok(" "),
    ]);
    assert_eq!(
        fixture.send_body("POST", &headers, cut).await.error(),
        (413, -32600)
    );
    assert_eq!(fixture.decided(), (413, Some("body.too_large")));

    let fits = pieces([
        Ok("{\"jsonrpc\":\"2.0\",\"id\":1,"),
        Ok(""),
        Ok("\"method\":\"ping\"}"),
    ]);
    assert_eq!(fixture.send_body("POST", &headers, fits).await.status, 200);
    assert_eq!(fixture.inner.last().body, ping);
}

/// A body with a declared length that must not be read.
struct Announced(u64);

impl Body for Announced {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        panic!("the body was read")
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

/// F4: a body with a too large declared length is rejected before it is read.
#[tokio::test]
async fn a_declared_length_is_checked_before_the_body_is_read() {
    let fixture = Fixture::open();
    assert_eq!(
        fixture
            .send_body("POST", &[], Announced(4 * 1024 * 1024 + 1))
            .await
            .status,
        413
    );
}

/// E5, F4: the size is checked before the session.
#[tokio::test]
async fn the_size_is_checked_first() {
    let mut fixture = Fixture::open();
    fixture.settings.max_body = 3;
    assert_eq!(fixture.send("POST", &[], "1234").await.status, 413);
    assert_eq!(
        fixture.send("POST", &[], "123").await.error(),
        (400, -32000)
    );
}

/// F4: all bodies share a budget, and return their part when they are dropped.
#[tokio::test]
async fn a_used_up_budget_is_rejected_with_retry_after() {
    let mut fixture = Fixture::open();
    let message = initialize().to_string();
    fixture.settings.budget = BodyBudget::new(message.len() + 2);
    let budget = Arc::clone(&fixture.settings.budget);
    assert_eq!(fixture.post(&[], &message).await.status, 200);

    // The inner service still holds the body.
    assert_eq!(budget.available(), 2);
    let response = fixture.send("POST", &[], "123").await;
    assert_eq!(response.status, 503);
    assert_eq!(response.header("retry-after"), Some("1"));
    assert_eq!(response.json()["error"]["code"], -32603);
    assert_eq!(fixture.send("POST", &[], "12").await.status, 400);

    fixture.inner = Inner::default();
    assert_eq!(budget.available(), message.len() + 2);
}

/// F4: in a session, a message that cannot be checked gets a specific error and is not forwarded.
#[tokio::test]
async fn unreadable_messages_in_a_session_get_specific_errors() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"a\":{0}1{1}}}}}",
        "[".repeat(63),
        "]".repeat(63)
    );
    let headers = [
        ("content-type", "application/json"),
        (SESSION, identifier.as_str()),
    ];
    for (body, code, reason, id) in [
        (b"{".as_slice(), -32700, "message.not_json", json!(null)),
        (b"", -32700, "message.not_json", json!(null)),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xC0\x80\"}",
            -32700,
            "message.not_utf8",
            json!(null),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x",
            -32700,
            "message.not_json",
            json!(null),
        ),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
            "message.batch",
            json!(null),
        ),
        (b"{}", -32600, "message.not_json_rpc", json!(null)),
        (
            b"{\"id\":\"a\",\"method\":\"ping\"}",
            -32600,
            "message.not_json_rpc",
            json!("a"),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"ping\"}",
            -32600,
            "message.duplicate_member",
            json!(1),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"ping\"}",
            -32600,
            "message.duplicate_member",
            json!(null),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}",
            -32602,
            "message.invalid_params",
            json!(1),
        ),
        (deep.as_bytes(), -32600, "message.too_deep", json!(1)),
    ] {
        let response = fixture.send("POST", &headers, body.to_vec()).await;
        assert_eq!(response.error(), (400, code), "{}", body.escape_ascii());
        assert_eq!(response.json()["id"], id, "{}", body.escape_ascii());
        assert_eq!(fixture.decided(), (400, Some(reason)));
    }
    assert_eq!(fixture.inner.seen().len(), 1);

    let wrong_type = [
        ("content-type", "text/plain"),
        (SESSION, identifier.as_str()),
    ];
    assert_eq!(
        fixture.send("POST", &wrong_type, "{").await.error(),
        (415, -32600)
    );
}

/// F4: the bytes that were checked are forwarded unchanged, including white space.
#[tokio::test]
async fn the_checked_bytes_are_the_forwarded_bytes() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let odd =
        " {\"id\" : 1,\r\n\"jsonrpc\":\"2.0\", \"m\\u0065thod\":\"ping\", \"x\":1e999, \"x\":2}\n ";
    let headers = [
        ("content-type", "application/json"),
        (SESSION, identifier.as_str()),
        ("content-length", "70"),
        ("transfer-encoding", "chunked"),
        ("trailer", "x-late"),
        ("x-other", "kept"),
    ];
    assert_eq!(fixture.send("POST", &headers, odd).await.status, 200);

    let seen = fixture.inner.last();
    assert_eq!(seen.body, odd);
    assert_eq!(seen.header("content-length"), None);
    assert_eq!(seen.header("transfer-encoding"), None);
    assert_eq!(seen.header("trailer"), None);
    assert_eq!(seen.header("x-other"), Some("kept"));
    assert!(seen.header("x-request-id").is_some());
}

#[tokio::test]
async fn an_incomplete_body_is_rejected() {
    let fixture = Fixture::open();
    let response = fixture
        .send_body("POST", &[], pieces([Ok("{"), Err("reset")]))
        .await;
    assert_eq!(response.error(), (400, -32600));
    assert_eq!(fixture.decided(), (400, Some("body.broken")));
}

/// F1: an unsupported method gets 405, after the bearer check.
#[tokio::test]
async fn other_methods_are_rejected_after_the_bearer_check() {
    let mut fixture = Fixture::guarded("");
    for method in ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "post", "BREW"] {
        let response = fixture.send(method, &[], "").await;
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(
            response.header("allow"),
            Some("GET, POST, DELETE"),
            "{method}"
        );
    }
    assert_eq!(fixture.decided(), (405, Some("endpoint.method")));
    fixture.use_no_token();
    for method in ["PUT", "HEAD", "GET", "POST", "DELETE", "BREW"] {
        assert_eq!(fixture.send(method, &[], "").await.status, 401, "{method}");
    }
    assert!(fixture.inner.seen().is_empty());
}
