use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use http::HeaderName;
use http_body_util::Full;
use portcullis_mcp::{Era, Revision};
use portcullis_session::EndReason;
use serde_json::json;

use super::world::*;

fn no_session() -> serde_json::Value {
    json!({
        "jsonrpc": "2.0",
        "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"},
        "id": null,
    })
}

/// E2: initialize goes on without an identifier, and its answer carries one of ours, exposed to pages.
#[tokio::test]
async fn initialize_opens_a_session() {
    let world = World::open();
    world.inner.answers(200, &[(SESSION, BACKEND), ("x-other", "kept")], "{\"result\":1}");
    let answer = world.post(&[("origin", "https://page.example")], initialize()).await;
    assert_eq!((answer.status, answer.body.as_ref()), (200, b"{\"result\":1}".as_ref()));
    let identifier = answer.header(SESSION).unwrap();
    assert!(identifier.len() >= 22 && identifier != BACKEND);
    assert_eq!(answer.header("x-other"), Some("kept"));
    let exposed = answer.header("access-control-expose-headers").unwrap().to_ascii_lowercase();
    assert!(exposed.contains(SESSION) && exposed.contains(VERSION), "{exposed}");
    let seen = world.inner.last();
    assert_eq!((seen.header(SESSION), seen.body.as_ref()), (None, initialize().to_string().as_bytes()));
    assert_eq!(seen.era, Era::Legacy { version: Some(Revision::V2025_11_25) });
    assert_eq!(world.sessions.len(), 1);
}

/// E2: what the backend does not accept opens nothing, and no identifier of its own comes through.
#[tokio::test]
async fn a_refused_initialize_opens_nothing() {
    let world = World::open();
    for status in [302, 400, 401, 404, 500] {
        world.inner.answers(status, &[(SESSION, BACKEND)], "no");
        let answer = world.post(&[], initialize()).await;
        assert_eq!((answer.status, answer.header(SESSION)), (status, None));
        assert!(world.sessions.is_empty());
    }
}

/// E2, E5: initialize with an identifier that names no session is no initialize.
#[tokio::test]
async fn initialize_with_an_unknown_identifier_is_refused() {
    let world = World::open();
    for identifier in ["made-up", BACKEND, ""] {
        let answer = world.post(&[(SESSION, identifier)], initialize()).await;
        assert_eq!((answer.status, answer.json()), (400, no_session()));
    }
    assert!(world.inner.seen().is_empty() && world.sessions.is_empty());
}

/// E4: requests go to the session with the backend's own identifier; the client sees only ours.
#[tokio::test]
async fn requests_in_a_session_are_mapped_both_ways() {
    let world = World::open();
    let identifier = world.initialize().await;
    world.inner.answers(200, &[(SESSION, BACKEND)], "{}");
    let answer = world.post(&[(SESSION, &identifier)], request("tools/list", json!({}))).await;
    assert_eq!((answer.status, answer.header(SESSION)), (200, Some(&*identifier)));
    assert_eq!(world.inner.last().header(SESSION), Some(BACKEND));

    world.inner.answers(200, &[(SESSION, "another-backend-session")], "{}");
    let answer = world.send("GET", &[(SESSION, &identifier)], "").await;
    assert_eq!((answer.status, answer.header(SESSION)), (200, None));
    assert_eq!(world.inner.last().header(SESSION), Some(BACKEND));

    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
        initialize(),
    ] {
        assert_eq!(world.post(&[(SESSION, &identifier)], &message).await.status, 200);
        assert_eq!(world.inner.last().header(SESSION), Some(BACKEND));
    }
    assert_eq!(world.sessions.len(), 1);
}

/// E3: neither side's identifier shows where headers are printed.
#[tokio::test]
async fn identifiers_are_redacted_in_headers() {
    let world = World::open();
    let identifier = world.initialize().await;
    world.inner.answers(200, &[(SESSION, BACKEND)], "{}");
    let answer = world.post(&[(SESSION, &identifier)], request("ping", json!({}))).await;
    let shown = format!("{:?} {:?}", answer.headers, world.inner.last().headers);
    assert!(shown.contains(SESSION) && !shown.contains(&identifier) && !shown.contains(BACKEND), "{shown}");
}

/// E4: a backend without sessions of its own is given no identifier, and its clients have one all the same.
#[tokio::test]
async fn a_backend_without_sessions_sees_no_identifier() {
    let world = World::open();
    let answer = world.post(&[], initialize()).await;
    let identifier = answer.header(SESSION).unwrap().to_owned();
    world.inner.answers(404, &[], "no such method");
    let answer = world.post(&[(SESSION, &identifier)], request("tools/list", json!({}))).await;
    assert_eq!(answer.status, 404);
    assert_eq!(world.inner.last().header(SESSION), None);
    assert_eq!(world.sessions.len(), 1);
    world.inner.answers(400, &[], "what session?");
    assert_eq!(world.send("DELETE", &[(SESSION, &identifier)], "").await.status, 204);
    assert!(world.sessions.is_empty());
}

/// E5: the answer is the same whatever the body is, and whatever it is said to be.
#[tokio::test]
async fn a_post_without_a_session_is_refused_whatever_it_holds() {
    let world = World::open();
    let json = "application/json";
    let deep = "[".repeat(1000);
    for (content_type, body) in [
        (json, br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.as_slice()),
        (json, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        (json, br#"{"jsonrpc":"2.0","method":"initialize"}"#),
        (json, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (json, b"[]"),
        (json, b"not json"),
        (json, b""),
        (json, b"\xFF\xFE"),
        (json, deep.as_bytes()),
        (json, br#"{"jsonrpc":"2.0","id":1,"method":"initialize","method":"initialize"}"#),
        ("text/plain", b"not json"),
        ("text/plain", br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
    ] {
        for headers in [&[][..], &[(SESSION, "unknown")], &[(SESSION, "a"), (SESSION, "a")], &[(VERSION, "1999-01-01")]]
        {
            let headers = [headers, &[("content-type", content_type)]].concat();
            let answer = world.send("POST", &headers, body.to_vec()).await;
            assert_eq!((answer.status, answer.json()), (400, no_session()), "{}", body.escape_ascii());
        }
    }
    assert!(world.inner.seen().is_empty());
}

/// E5, E6: a session that `Connection` names away is none, and nothing else that it names goes on.
#[tokio::test]
async fn connection_options_are_no_part_of_a_request() {
    let world = World::open();
    let identifier = world.initialize().await;
    let seen = world.inner.seen().len();
    let headers = [("connection", "close, Mcp-Session-Id"), (SESSION, &*identifier)];
    let answer = world.post(&headers, request("tools/list", json!({}))).await;
    assert_eq!((answer.status, answer.json()), (400, no_session()));
    assert_eq!(world.send("GET", &headers, "").await.status, 400);
    assert_eq!(world.inner.seen().len(), seen);
    let headers = [("connection", "x-mine"), ("x-mine", "1"), (SESSION, &*identifier)];
    assert_eq!(world.send("GET", &headers, "").await.status, 200);
    assert_eq!((world.inner.last().header("connection"), world.inner.last().header("x-mine")), (None, None));
}

/// E5: initialize itself is judged like any message.
#[tokio::test]
async fn initialize_must_be_json() {
    let world = World::open();
    let answer = world.send("POST", &[("content-type", "text/plain")], initialize().to_string()).await;
    assert_eq!(answer.error(), (415, -32600));
    let answer = world.post(&[(VERSION, "1999-01-01")], initialize()).await;
    assert_eq!(answer.error(), (400, -32600));
    assert!(world.inner.seen().is_empty());
}

/// E6: GET and DELETE without a usable session get plain text.
#[tokio::test]
async fn streams_without_a_session_are_refused_in_plain_text() {
    let world = World::open();
    for method in ["GET", "DELETE"] {
        for headers in [&[][..], &[(SESSION, "unknown")], &[(SESSION, "")], &[(SESSION, "a"), (SESSION, "b")]] {
            let answer = world.send(method, headers, "").await;
            assert_eq!((answer.status, answer.body.as_ref()), (400, b"Invalid or missing session ID".as_ref()));
            assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        }
    }
    assert!(world.inner.seen().is_empty());
    assert_eq!(world.decided(), (400, Some("session.repeated")));
}

/// E7: to anybody but its owner a session is unknown, and is not disturbed.
#[tokio::test]
async fn another_owner_finds_nothing() {
    let mut world = World::guarded("");
    let identifier = world.initialize().await;
    let seen = world.inner.seen().len();
    for other in [
        world.forge.token().subject("mallory"),
        world.forge.token().client_id("other-client"),
        world.forge.token().without("client_id"),
        world.forge.token().subject("ALICE"),
        world.forge.token().without("sub"),
    ] {
        world.comes_with(&other);
        let answer = world.post(&[(SESSION, &identifier)], request("tools/list", json!({}))).await;
        assert_eq!((answer.status, answer.json()), (400, no_session()));
        for method in ["GET", "DELETE"] {
            let answer = world.send(method, &[(SESSION, &identifier)], "").await;
            assert_eq!((answer.status, answer.body.as_ref()), (400, b"Invalid or missing session ID".as_ref()));
        }
    }
    assert_eq!((world.inner.seen().len(), world.sessions.len()), (seen, 1));
    world.comes_with(&world.forge.token().scope("other scopes"));
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
}

/// E7: the use by others does not keep a session alive.
#[tokio::test]
async fn another_owner_does_not_keep_a_session_alive() {
    let mut world = World::guarded("");
    let identifier = world.initialize().await;
    let owner = world.forge.token().expires_in(36_000);
    let mallory = world.forge.token().subject("mallory").expires_in(36_000);
    world.clock.advance(20 * MINUTE);
    world.comes_with(&mallory);
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
    world.clock.advance(11 * MINUTE);
    world.comes_with(&owner);
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
    assert_eq!(world.decided(), (400, Some("session.ended")));
}

/// E7: possession of an identifier authorizes nothing.
#[tokio::test]
async fn an_identifier_is_no_authorization() {
    let mut world = World::guarded("");
    let identifier = world.initialize().await;
    world.comes_without_token();
    for method in ["POST", "GET", "DELETE"] {
        let answer = world.send(method, &[(SESSION, &identifier)], "").await;
        assert_eq!(answer.status, 401);
        assert!(answer.header("www-authenticate").unwrap().starts_with(CHALLENGE_START));
    }
    assert_eq!(world.sessions.len(), 1);
}

/// E7: a token without subject opens a session only where its issuer lets clients own them.
#[tokio::test]
async fn a_token_without_subject_opens_no_session() {
    let mut world = World::guarded("");
    let client = world.forge.token().without("sub");
    world.comes_with(&client);
    let answer = world.post(&[], initialize()).await;
    assert_eq!(answer.error(), (403, -32600));
    assert_eq!((answer.json()["id"].clone(), answer.header("www-authenticate")), (json!(1), None));
    assert_eq!(world.decided(), (403, Some("session.no_owner")));
    assert!(world.inner.seen().is_empty());

    let mut world = World::guarded_by(|issuer| issuer.subjectless_client = true);
    world.comes_with(&client);
    let identifier = world.initialize().await;
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
    world.comes_with(&world.forge.token().subject("test-client").without("client_id"));
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
    world.comes_with(&world.forge.token().without("sub").without("client_id"));
    assert_eq!(world.post(&[], initialize()).await.status, 403);
}

/// E9: DELETE is passed on, and ends the session whatever the backend has to say; a failure of the backend's is told
/// apart, so that it can be asked again.
#[tokio::test]
async fn delete_ends_the_session() {
    use EndReason::{DeleteFailed, Deleted};
    for (backend, client, reason) in [
        (200, 200, Deleted),
        (204, 204, Deleted),
        (202, 202, Deleted),
        (404, 204, Deleted),
        (405, 204, Deleted),
        (301, 204, DeleteFailed),
        (403, 204, DeleteFailed),
        (500, 204, DeleteFailed),
        (502, 204, DeleteFailed),
    ] {
        let world = World::open();
        let identifier = world.initialize().await;
        world.inner.answers(backend, &[(SESSION, BACKEND)], "");
        let answer = world.send("DELETE", &[(SESSION, &identifier)], "").await;
        assert_eq!((answer.status, answer.header(SESSION)), (client, None));
        assert_eq!((world.inner.last().method.as_str(), world.inner.last().header(SESSION)), ("DELETE", Some(BACKEND)));
        assert_eq!(world.ended(), [reason]);
        assert_eq!(world.send("DELETE", &[(SESSION, &identifier)], "").await.status, 400);
    }
}

/// E9: a client that does not wait for the answer to its DELETE has ended its session all the same.
#[tokio::test]
async fn a_delete_that_nobody_waits_for_ends_the_session() {
    let world = World::open();
    let identifier = world.initialize().await;
    world.inner.falls_silent(true);
    let headers = [(SESSION, &*identifier)];
    let mut delete = Box::pin(world.start("DELETE", &headers, Full::from("")));
    assert!(poll_once(&mut delete).is_pending());
    drop(delete);
    assert_eq!(world.ended(), [EndReason::DeleteFailed]);
}

/// E9: the backend's 404 to its own identifier ends the session; other failures do not.
#[tokio::test]
async fn a_backend_that_forgot_the_session_ends_it() {
    let world = World::open();
    let identifier = world.initialize().await;
    for status in [400, 401, 405, 500, 503] {
        world.inner.answers(status, &[], "");
        let answer = world.send("GET", &[(SESSION, &identifier)], "").await;
        assert_eq!(answer.status, status);
    }
    assert!(world.ended().is_empty());
    world.inner.answers(404, &[(SESSION, BACKEND)], "");
    let answer = world.post(&[(SESSION, &identifier)], request("ping", json!({}))).await;
    assert_eq!((answer.status, answer.header(SESSION)), (404, None));
    assert_eq!(world.ended(), [EndReason::TransportClosed]);
    let answer = world.post(&[(SESSION, &identifier)], request("ping", json!({}))).await;
    assert_eq!(answer.json(), no_session());
}

/// E9: a client that only listens does not lose its session, nor one whose call takes long.
#[tokio::test]
async fn a_session_with_an_open_stream_does_not_go_idle() {
    let world = World::open();
    let identifier = world.initialize().await;
    let headers = [(SESSION, &*identifier)];
    let stream = world.start("GET", &headers, Full::from("")).await.unwrap();
    world.clock.advance(120 * MINUTE);
    assert_eq!(world.sessions.sweep(), 0);
    drop(stream);

    world.inner.falls_silent(true);
    let mut call = Box::pin(world.start("GET", &headers, Full::from("")));
    assert!(poll_once(&mut call).is_pending());
    world.clock.advance(120 * MINUTE);
    assert_eq!(world.sessions.sweep(), 0);
    drop(call);
    world.inner.falls_silent(false);

    world.clock.advance(29 * MINUTE);
    assert_eq!(world.send("GET", &headers, "").await.status, 200);
    world.clock.advance(30 * MINUTE);
    assert_eq!(world.send("GET", &headers, "").await.status, 400);
    assert_eq!(world.ended(), [EndReason::Idle]);
}

/// E9: at a limit new sessions are refused before the backend hears of them, and old ones live on.
#[tokio::test]
async fn a_full_store_refuses_new_sessions() {
    let world = World::guarded("");
    let identifier = world.initialize().await;
    world.initialize().await;
    let seen = world.inner.seen().len();
    let answer = world.post(&[], initialize()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")));
    assert_eq!(answer.json()["id"], 1);
    assert_eq!(world.decided(), (503, Some("session.owner_full")));
    assert_eq!(world.inner.seen().len(), seen);
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
}

/// E2: room is held while the backend thinks, and given back when the client goes away.
#[tokio::test]
async fn room_is_held_during_initialize() {
    let world = World::guarded("");
    let json = [("content-type", "application/json")];
    let start = || Box::pin(world.start("POST", &json, Full::from(initialize().to_string())));
    world.inner.falls_silent(true);
    let (mut first, mut second) = (start(), start());
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    assert_eq!(world.post(&[], initialize()).await.status, 503);
    drop(first);
    world.inner.falls_silent(false);
    world.initialize().await;
    assert_eq!(world.post(&[], initialize()).await.status, 503);
}

fn poll_once<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// E1: the header's name is configurable; under the usual name nothing passes in either direction.
#[tokio::test]
async fn the_session_header_can_have_another_name() {
    let mut world = World::open();
    world.settings.session_header = HeaderName::from_static("acme-session-id");
    world.inner.answers(200, &[("acme-session-id", BACKEND), (SESSION, "stray")], "{}");
    let answer = world.post(&[], initialize()).await;
    let identifier = answer.header("acme-session-id").unwrap().to_owned();
    assert_eq!(answer.header(SESSION), None);
    world.send("GET", &[("acme-session-id", &identifier), (SESSION, "guess")], "").await;
    let seen = world.inner.last();
    assert_eq!((seen.header("acme-session-id"), seen.header(SESSION)), (Some(BACKEND), None));
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
}

/// E1: any identifier that is not ours is an unknown one, however odd.
#[tokio::test]
async fn odd_identifiers_are_unknown() {
    let world = World::open();
    let identifier = world.initialize().await;
    let (long, spaced) = ("a".repeat(100_000), format!("{identifier} "));
    for odd in [&*long, &spaced, "a b", "\t", &identifier[1..], &identifier.to_ascii_uppercase()] {
        let answer = world.post(&[(SESSION, odd)], request("ping", json!({}))).await;
        assert_eq!(answer.json(), no_session());
    }
}

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
    for bad in ["2025-03-26", "2099-01-01", "x", ""] {
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

/// F7: without authorization sessions are kept by identifier alone.
#[tokio::test]
async fn without_authorization_anybody_may_use_a_session() {
    let mut world = World::open();
    let identifier = world.initialize().await;
    world.comes_with(&world.forge.token().subject("mallory"));
    assert_eq!(world.send("GET", &[(SESSION, &identifier)], "").await.status, 200);
    assert_eq!(world.inner.last().header("authorization"), None);
}
