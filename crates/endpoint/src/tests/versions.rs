//! The revision of requests in a session.

use std::{
    convert::Infallible,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use portcullis_guard::GuardLayer;
use portcullis_mcp::{Era, Revision, Revisions};
use serde_json::json;
use tower::{Layer, ServiceExt, service_fn};

use super::fixture::*;
use crate::{Admitted, BackendSessionGuard, BodyBudget, EndpointLayer};

/// F6: the version header must be a served legacy revision. Without it, the session's revision
/// applies.
#[tokio::test]
async fn the_version_of_a_session_is_kept() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let ping = request("ping", json!({}));
    fixture.post(&[(SESSION, &identifier)], &ping).await;
    assert_eq!(
        fixture.inner.last().era,
        Era::Legacy {
            version: Some(Revision::V2025_11_25)
        }
    );

    fixture
        .post(&[(SESSION, &identifier), (VERSION, "2025-06-18")], &ping)
        .await;
    assert_eq!(
        fixture.inner.last().era,
        Era::Legacy {
            version: Some(Revision::V2025_06_18)
        }
    );
    fixture.send("GET", &[(SESSION, &identifier)], "").await;
    assert_eq!(
        fixture.inner.last().era,
        Era::Legacy {
            version: Some(Revision::V2025_11_25)
        }
    );

    let seen = fixture.inner.seen().len();
    for bad in ["2024-11-05", "2099-01-01", "x", ""] {
        let response = fixture
            .post(&[(SESSION, &identifier), (VERSION, bad)], &ping)
            .await;
        assert_eq!(response.error(), (400, -32600), "{bad}");
        assert_eq!(response.json()["id"], 7);
        for method in ["GET", "DELETE"] {
            let response = fixture
                .send(method, &[(SESSION, &identifier), (VERSION, bad)], "")
                .await;
            assert_eq!(response.status, 400, "{bad}");
        }
    }
    assert_eq!(fixture.inner.seen().len(), seen);
}

/// F6: a session has the revision in the backend's response, in every format of the response. If
/// the response has none, the session has the requested revision.
#[tokio::test]
async fn the_version_is_the_negotiated_one() {
    let json = ("content-type", "application/json");
    let events = ("content-type", "text/event-stream; charset=utf-8");
    let asked = Some(Revision::V2025_11_25);
    let older = Some(Revision::V2025_06_18);
    const RESPONSE: &str =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    const STREAM: &str = "id: 0\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n\
        data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n\n: later\n\n";
    // Clients skip events of other types than `message`.
    const OTHER_TYPE: &str = "event: ping\ndata: {\"id\":1,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n\n\
        event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n\n";
    for (headers, body, settled) in [
        (&[json][..], RESPONSE, older),
        (&[events], STREAM, older),
        (&[events], OTHER_TYPE, older),
        (
            &[json],
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#,
            asked,
        ),
        (&[json], "no JSON", asked),
        (&[json], "", asked),
        (&[events], "data: no JSON\n\n", asked),
        (&[events], "", asked),
        (&[json, ("content-encoding", "gzip")], RESPONSE, asked),
        (&[("content-type", "text/plain")], RESPONSE, asked),
        (&[], RESPONSE, asked),
    ] {
        let fixture = Fixture::open();
        fixture
            .inner
            .add_response(200, &[headers, &[(SESSION, BACKEND)]].concat(), body);
        let response = fixture.post(&[], initialize()).await;
        assert_eq!(response.body, body, "the body is forwarded unchanged");
        let identifier = response.header(SESSION).unwrap().to_owned();
        fixture.send("GET", &[(SESSION, &identifier)], "").await;
        assert_eq!(
            fixture.inner.last().era,
            Era::Legacy { version: settled },
            "{headers:?} {body}"
        );
    }
}

/// E11: a negotiated revision that is not served opens no session, and the inner service's session
/// is ended.
#[tokio::test]
async fn a_negotiated_version_that_is_not_served_is_rejected() {
    for (content_type, body) in [
        (
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#,
        ),
        (
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2026-07-28"}}"#,
        ),
        (
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#,
        ),
        (
            "text/event-stream",
            "data:\n\ndata: {\"id\":1,\"result\":{\"protocolVersion\":\"2024-11-05\"}}\n\n",
        ),
    ] {
        let mut fixture = Fixture::open();
        fixture.settings.revisions =
            Revisions::from_iter([Revision::V2025_11_25, Revision::V2026_07_28]);
        let ended = Arc::new(AtomicUsize::new(0));
        let guard = BackendSessionGuard::new({
            let ended = Arc::clone(&ended);
            move || {
                ended.fetch_add(1, Ordering::Relaxed);
            }
        });
        fixture.inner.add_response(
            200,
            &[("content-type", content_type), (SESSION, BACKEND)],
            body,
        );
        fixture.inner.with_extension(guard);
        let response = fixture.post(&[], initialize()).await;
        assert_eq!(response.error(), (400, -32022), "{body}");
        assert_eq!(response.header(SESSION), None, "{body}");
        let json = response.json();
        assert_eq!(json["id"], 1);
        assert_eq!(
            json["error"]["data"],
            json!({"supported": ["2025-11-25"], "requested": "2025-11-25"})
        );
        assert!(
            json["error"]["message"]
                .as_str()
                .unwrap()
                .contains("2025-11-25"),
            "{json}"
        );
        assert_eq!(fixture.decided(), (400, Some("era.version_negotiated")));
        assert_eq!(fixture.sessions.len(), 0);
        assert_eq!(fixture.ended().len(), 0);
        assert_eq!(ended.load(Ordering::Relaxed), 1);
    }
}

/// E11: a session that is recorded is not ended.
#[tokio::test]
async fn a_recorded_session_continues() {
    const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#;
    for (content_type, body) in [("application/json", RESPONSE), ("text/plain", RESPONSE)] {
        let fixture = Fixture::open();
        let ended = Arc::new(AtomicUsize::new(0));
        let end = Arc::clone(&ended);
        fixture.inner.add_response(
            200,
            &[("content-type", content_type), (SESSION, BACKEND)],
            body,
        );
        fixture
            .inner
            .with_extension(BackendSessionGuard::new(move || {
                end.fetch_add(1, Ordering::Relaxed);
            }));
        assert_eq!(fixture.post(&[], initialize()).await.status, 200);
        assert_eq!(fixture.sessions.len(), 1, "{content_type}");
        assert_eq!(ended.load(Ordering::Relaxed), 0, "{content_type}");
    }
}

/// E11: a session whose client disconnects before it is recorded ends.
#[tokio::test]
async fn a_session_of_a_disconnected_client_ends() {
    let fixture = Fixture::open();
    let ended = Arc::new(AtomicUsize::new(0));
    let end = Arc::clone(&ended);
    let guard = BackendSessionGuard::new(move || {
        end.fetch_add(1, Ordering::Relaxed);
    });
    let inner = service_fn(move |_: Admitted| {
        let head = Response::builder()
            .header("content-type", "application/json")
            .extension(guard.clone());
        ready(Ok::<_, Infallible>(head.body(Stalled).unwrap()))
    });
    let endpoint = EndpointLayer::new(fixture.settings.clone())
        .unwrap()
        .layer(inner);
    let guarded = GuardLayer::new(Arc::clone(&fixture.settings.resource)).layer(endpoint);
    let body = Full::new(Bytes::from(initialize().to_string()));
    let request = fixture.request("POST", &[("content-type", "application/json")], body);
    let mut opening = Box::pin(guarded.oneshot(request));
    assert!(poll_once(&mut opening).is_pending());
    assert_eq!(ended.load(Ordering::Relaxed), 0);
    drop(opening);
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    assert!(fixture.sessions.is_empty());
}

/// E11: the revision is also read while the budget for bodies is used up. A response that is too
/// long for it is not passed on unread.
#[tokio::test]
async fn a_response_is_read_without_a_budget() {
    let named = |version: &str, spaces: usize| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{version}"}}{:spaces$}}}"#,
            ""
        );
        &*body.leak()
    };
    for (body, status, reason) in [
        (named("2025-06-18", 0), 200, None),
        (
            named("1999-01-01", 0),
            400,
            Some("message.unsupported_version"),
        ),
        (
            named("2025-06-18", 16 << 10),
            503,
            Some("body.budget_spent"),
        ),
    ] {
        let mut fixture = Fixture::open();
        fixture.settings.budget = BodyBudget::new(initialize().to_string().len());
        fixture.inner.add_response(
            200,
            &[("content-type", "application/json"), (SESSION, BACKEND)],
            body,
        );
        let response = fixture.post(&[], initialize()).await;
        assert_eq!(
            (response.status, reason.is_some()),
            (status, fixture.decided().1.is_some()),
            "{body}"
        );
        assert_eq!(fixture.sessions.len(), usize::from(status == 200));
        if let Some(identifier) = response.header(SESSION).map(ToOwned::to_owned) {
            fixture.send("GET", &[(SESSION, &identifier)], "").await;
            assert_eq!(
                fixture.inner.last().era,
                Era::Legacy {
                    version: Some(Revision::V2025_06_18)
                }
            );
        }
    }
}

/// E11: 2025-03-26 does not define a version header. Clients of later revisions may send it.
#[tokio::test]
async fn the_oldest_served_revision_works_with_and_without_its_header() {
    let fixture = Fixture::open();
    let body =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}"#;
    fixture.inner.add_response(
        200,
        &[("content-type", "application/json"), (SESSION, BACKEND)],
        body,
    );
    let mut asks = initialize();
    asks["params"]["protocolVersion"] = json!("2025-03-26");
    let response = fixture.post(&[], asks).await;
    assert_eq!(response.status, 200);
    assert_eq!(&*response.body, body.as_bytes());

    let identifier = response.header(SESSION).unwrap().to_owned();
    let era = Era::Legacy {
        version: Some(Revision::V2025_03_26),
    };
    for headers in [
        &[(SESSION, &*identifier)][..],
        &[(SESSION, &identifier), (VERSION, "2025-03-26")],
    ] {
        assert_eq!(
            fixture
                .post(headers, request("ping", json!({})))
                .await
                .status,
            200
        );
        assert_eq!(fixture.inner.last().era, era);
        assert_eq!(fixture.send("GET", headers, "").await.status, 200);
        assert_eq!(fixture.inner.last().era, era);
    }
    let batch = json!([request("ping", json!({}))]);
    assert_eq!(
        fixture.post(&[(SESSION, &identifier)], batch).await.error(),
        (400, -32600)
    );
}

/// F6: a response is held back up to a limit, and then forwarded completely.
#[tokio::test]
async fn an_endless_response_to_initialize_is_not_held_back() {
    let response = |length: usize| {
        let [head, tail] = [
            r#"{"jsonrpc":"2.0","id":1,"#,
            r#""result":{"protocolVersion":"2025-06-18"}}"#,
        ];
        format!(
            "{head}{}{tail}",
            " ".repeat(length - head.len() - tail.len())
        )
    };
    for (length, settled) in [
        (256 << 10, Revision::V2025_06_18),
        ((256 << 10) + 1, Revision::V2025_11_25),
    ] {
        let fixture = Fixture::open();
        let body = response(length);
        fixture.inner.add_response(
            200,
            &[("content-type", "application/json"), (SESSION, BACKEND)],
            body.clone().leak(),
        );
        let response = fixture.post(&[], initialize()).await;
        assert_eq!(response.body, body);
        let identifier = response.header(SESSION).unwrap().to_owned();
        fixture.send("GET", &[(SESSION, &identifier)], "").await;
        assert_eq!(
            fixture.inner.last().era,
            Era::Legacy {
                version: Some(settled)
            },
            "{length}"
        );
    }
}
