//! Which revision a request in a session is of.

use portcullis_mcp::{Era, Revision};
use serde_json::json;

use super::world::*;

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
        (&[json], r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01"}}"#, asked),
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

/// F6: only so much of an answer is read along, and all of it is handed on.
#[tokio::test]
async fn an_endless_answer_to_initialize_is_not_read_along() {
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
