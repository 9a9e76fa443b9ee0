//! Which revision a request in a session is of.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use portcullis_mcp::{Era, Revision, Revisions};
use serde_json::json;

use super::world::*;
use crate::{BackendSessionGuard, BodyBudget};

/// F6: a version header must be a served legacy one; without it the session's own counts.
#[tokio::test]
async fn the_version_of_a_session_is_kept() {
    let world = World::open();
    let identifier = world.initialize().await;
    let ping = request("ping", json!({}));
    world.post(&[(SESSION, &identifier)], &ping).await;
    assert_eq!(world.inner.last().era, Era::Legacy { version: Some(Revision::V2025_11_25) });
    world.post(&[(SESSION, &identifier), (VERSION, "2025-06-18")], &ping).await;
    assert_eq!(world.inner.last().era, Era::Legacy { version: Some(Revision::V2025_06_18) });
    world.send("GET", &[(SESSION, &identifier)], "").await;
    assert_eq!(world.inner.last().era, Era::Legacy { version: Some(Revision::V2025_11_25) });
    let seen = world.inner.seen().len();
    for bad in ["2024-11-05", "2099-01-01", "x", ""] {
        let answer = world.post(&[(SESSION, &identifier), (VERSION, bad)], &ping).await;
        assert_eq!(answer.error(), (400, -32600), "{bad}");
        assert_eq!(answer.json()["id"], 7);
        for method in ["GET", "DELETE"] {
            let answer = world.send(method, &[(SESSION, &identifier), (VERSION, bad)], "").await;
            assert_eq!(answer.status, 400, "{bad}");
        }
    }
    assert_eq!(world.inner.seen().len(), seen);
}

/// F6: a session follows the version that the backend settled on, be it another one than the client asked for, and however
/// the answer comes; where the answer does not say, what was asked for.
#[tokio::test]
async fn the_version_is_the_negotiated_one() {
    let json = ("content-type", "application/json");
    let events = ("content-type", "text/event-stream; charset=utf-8");
    let (asked, older) = (Some(Revision::V2025_11_25), Some(Revision::V2025_06_18));
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    const STREAM: &str = "id: 0\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n\
        data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n\n: later\n\n";
    for (headers, body, settled) in [
        (&[json][..], ANSWER, older),
        (&[events], STREAM, older),
        (&[json], r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#, asked),
        (&[json], "no JSON", asked),
        (&[json], "", asked),
        (&[events], "data: no JSON\n\n", asked),
        (&[events], "", asked),
        (&[json, ("content-encoding", "gzip")], ANSWER, asked),
        (&[("content-type", "text/plain")], ANSWER, asked),
        (&[], ANSWER, asked),
    ] {
        let world = World::open();
        world.inner.answers(200, &[headers, &[(SESSION, BACKEND)]].concat(), body);
        let answer = world.post(&[], initialize()).await;
        assert_eq!(answer.body, body, "handed on as it came");
        let identifier = answer.header(SESSION).unwrap().to_owned();
        world.send("GET", &[(SESSION, &identifier)], "").await;
        assert_eq!(world.inner.last().era, Era::Legacy { version: settled }, "{headers:?} {body}");
    }
}

/// E11: an `initialize` that settles on a revision that is not served opens nothing, and the inner service's session ends.
#[tokio::test]
async fn a_negotiated_version_that_is_not_served_fails_at_once() {
    for (content_type, body) in [
        ("application/json", r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#),
        ("application/json", r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2026-07-28"}}"#),
        ("application/json", r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#),
        ("text/event-stream", "data:\n\ndata: {\"id\":1,\"result\":{\"protocolVersion\":\"2024-11-05\"}}\n\n"),
    ] {
        let mut world = World::open();
        world.settings.revisions = Revisions::from_iter([Revision::V2025_11_25, Revision::V2026_07_28]);
        let ended = Arc::new(AtomicUsize::new(0));
        let guard = BackendSessionGuard::new({
            let ended = Arc::clone(&ended);
            move || {
                ended.fetch_add(1, Ordering::Relaxed);
            }
        });
        world.inner.answers(200, &[("content-type", content_type), (SESSION, BACKEND)], body);
        world.inner.with_extension(guard);
        let answer = world.post(&[], initialize()).await;
        assert_eq!((answer.error(), answer.header(SESSION)), ((400, -32022), None), "{body}");
        let json = answer.json();
        assert_eq!(json["id"], 1);
        assert_eq!(json["error"]["data"], json!({"supported": ["2025-11-25"], "requested": "2025-11-25"}));
        assert!(json["error"]["message"].as_str().unwrap().contains("2025-11-25"), "{json}");
        assert_eq!(world.decided(), (400, Some("era.version_negotiated")));
        assert_eq!((world.sessions.len(), world.ended().len(), ended.load(Ordering::Relaxed)), (0, 0, 1));
    }
}

/// E11: a session that is recorded is not ended with the answer, and one whose client goes away before is.
#[tokio::test]
async fn a_session_is_recorded_or_ends() {
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#;
    for (content_type, body) in [("application/json", ANSWER), ("text/plain", ANSWER)] {
        let world = World::open();
        let ended = Arc::new(AtomicUsize::new(0));
        let end = Arc::clone(&ended);
        world.inner.answers(200, &[("content-type", content_type), (SESSION, BACKEND)], body);
        world.inner.with_extension(BackendSessionGuard::new(move || {
            end.fetch_add(1, Ordering::Relaxed);
        }));
        assert_eq!(world.post(&[], initialize()).await.status, 200);
        assert_eq!((world.sessions.len(), ended.load(Ordering::Relaxed)), (1, 0), "{content_type}");
    }
}

/// E11: what the client asked for counts where the budget of all bodies is spent.
#[tokio::test]
async fn an_answer_is_held_back_within_the_budget() {
    let mut world = World::open();
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#;
    world.settings.budget = BodyBudget::new(initialize().to_string().len() + body.len() - 1);
    world.inner.answers(200, &[("content-type", "application/json"), (SESSION, BACKEND)], body);
    let answer = world.post(&[], initialize()).await;
    assert_eq!(answer.body, body);
    let identifier = answer.header(SESSION).unwrap().to_owned();
    world.send("GET", &[(SESSION, &identifier)], "").await;
    assert_eq!(world.inner.last().era, Era::Legacy { version: Some(Revision::V2025_11_25) });
}

/// E11: 2025-03-26 has no version header of its own; later clients send it all the same.
#[tokio::test]
async fn the_oldest_served_revision_works_with_and_without_its_header() {
    let world = World::open();
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}"#;
    world.inner.answers(200, &[("content-type", "application/json"), (SESSION, BACKEND)], body);
    let mut asks = initialize();
    asks["params"]["protocolVersion"] = json!("2025-03-26");
    let answer = world.post(&[], asks).await;
    assert_eq!((answer.status, &*answer.body), (200, body.as_bytes()));
    let identifier = answer.header(SESSION).unwrap().to_owned();
    let era = Era::Legacy { version: Some(Revision::V2025_03_26) };
    for headers in [&[(SESSION, &*identifier)][..], &[(SESSION, &identifier), (VERSION, "2025-03-26")]] {
        assert_eq!(world.post(headers, request("ping", json!({}))).await.status, 200);
        assert_eq!(world.inner.last().era, era);
        assert_eq!(world.send("GET", headers, "").await.status, 200);
        assert_eq!(world.inner.last().era, era);
    }
    let batch = json!([request("ping", json!({}))]);
    assert_eq!(world.post(&[(SESSION, &identifier)], batch).await.error(), (400, -32600));
}

/// F6: only so much of an answer is held back, and all of it is handed on.
#[tokio::test]
async fn an_endless_answer_to_initialize_is_not_held_back() {
    let answer = |length: usize| {
        let [head, tail] = [r#"{"jsonrpc":"2.0","id":1,"#, r#""result":{"protocolVersion":"2025-06-18"}}"#];
        format!("{head}{}{tail}", " ".repeat(length - head.len() - tail.len()))
    };
    for (length, settled) in [(256 << 10, Revision::V2025_06_18), ((256 << 10) + 1, Revision::V2025_11_25)] {
        let (world, body) = (World::open(), answer(length));
        world.inner.answers(200, &[("content-type", "application/json"), (SESSION, BACKEND)], body.clone().leak());
        let answer = world.post(&[], initialize()).await;
        assert_eq!(answer.body, body);
        let identifier = answer.header(SESSION).unwrap().to_owned();
        world.send("GET", &[(SESSION, &identifier)], "").await;
        assert_eq!(world.inner.last().era, Era::Legacy { version: Some(settled) }, "{length}");
    }
}
