//! Streams on which clients listen: their comments, their result, and their end with the session or the server.

use serde_json::json;

use super::rig::*;
use crate::{StreamEndReason, tests::fixture::*};

const JSON: (&str, &str) = ("content-type", "application/json");

/// The result of `subscriptions/listen` for the id of [`modern`] messages.
const RESULT: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":\"complete\",\
                      \"_meta\":{\"io.modelcontextprotocol/subscriptionId\":7}}}\n\n";

async fn modern_stream(streams: &Streams, method: &str, response: &'static [(&'static str, &'static str)]) -> Open {
    let headers = [(VERSION, "2026-07-28"), ("mcp-method", method), JSON];
    streams.open("POST", &headers, modern(method, json!({"notifications": {}})).to_string(), response).await
}

async fn listen(streams: &Streams) -> Open {
    modern_stream(streams, "subscriptions/listen", EVENT_STREAM).await
}

/// L3: a stream that is silent for 15 s sends a comment, and another one 15 s later.
#[tokio::test]
async fn a_silent_stream_sends_comments() {
    let streams = Streams::new().await;
    let mut open = streams.get().await;
    assert_eq!(open.read_all(), Read::Nothing);
    assert_eq!(streams.pass(14), 0);
    assert_eq!(open.woken(), 0);
    assert_eq!(open.read_all(), Read::Nothing);
    assert_eq!(streams.pass(1), 0);
    assert_eq!(open.woken(), 1);
    assert_eq!(open.read_all(), piece(COMMENT));
    assert_eq!(open.read_all(), Read::Nothing);
    open.events.send("data: 1\n\n");
    assert_eq!(open.read_all(), piece("data: 1\n\n"));
    assert_eq!(streams.pass(1), 0);
    assert_eq!(streams.pass(14), 0);
    assert_eq!(open.read_all(), Read::Nothing);
    assert_eq!(streams.pass(1), 0);
    assert_eq!(open.read_all(), piece(COMMENT));
    assert_eq!(open.read_all(), Read::Nothing);
}

/// L3: no comment splits an event, and none is added to bytes that are encoded or have a fixed length.
#[tokio::test]
async fn comments_have_their_places() {
    let mut streams = Streams::new().await;
    streams.comes_with(600, "mcp:tools", |token| token);
    let mut open = streams.get().await;
    open.events.send("data: 1\n");
    assert_eq!(open.read_all(), piece("data: 1\n"));
    assert_eq!(streams.pass(1), 0);
    assert_eq!(streams.pass(15), 0);
    assert_eq!(open.read_all(), Read::Nothing);
    open.events.send("\n");
    assert_eq!(open.read_all(), piece("\n"));
    assert_eq!(open.read_all(), Read::Nothing);

    const ENCODED: &[(&str, &str)] = &[("content-type", "text/event-stream"), ("content-encoding", "gzip")];
    const FIXED: &[(&str, &str)] = &[("content-type", "text/event-stream"), ("content-length", "100")];
    for response in [ENCODED, FIXED] {
        let mut open = streams.open("GET", &[(SESSION, &streams.session)], String::new(), response).await;
        assert_eq!(streams.pass(15), 0);
        assert_eq!(open.read_all(), Read::Nothing);
        let mut listening = modern_stream(&streams, "subscriptions/listen", response).await;
        drop(open);
        assert_eq!(streams.pass(20), 0);
        assert_eq!(listening.read_all(), Read::Nothing);
    }
}

/// L3: the stream of a modern listener ends with the result of its request, once, after the event that has begun.
#[tokio::test]
async fn a_listener_receives_its_result() {
    let streams = Streams::new().await;
    let mut quiet = listen(&streams).await;
    let mut amid = listen(&streams).await;
    let mut incomplete = listen(&streams).await;
    for open in [&mut amid, &mut incomplete] {
        open.events.send("data: 1");
        assert_eq!(open.read(), piece("data: 1"));
    }
    assert_eq!(streams.pass(60 + LEEWAY), 3);
    assert_eq!(quiet.read_all(), piece(RESULT));
    assert_eq!(quiet.read_all(), Read::End);
    assert!(quiet.events.is_dropped());
    assert!(quiet.body.is_end_stream());
    amid.events.send("\n\ndata: 2\n\n");
    assert_eq!(amid.read(), piece("\n\n"));
    assert_eq!(amid.read(), piece(RESULT));
    assert_eq!(amid.read(), Read::End);
    assert_eq!(streams.pass(10), 0);
    assert_eq!(incomplete.read(), Read::Failure);
    assert_eq!(incomplete.read(), Read::End);
}

/// L3: only the stream of a listener has a result.
#[tokio::test]
async fn other_streams_have_no_result() {
    let streams = Streams::new().await;
    let mut get = streams.get().await;
    let mut call = modern_stream(&streams, "tools/list", EVENT_STREAM).await;
    assert_eq!(streams.pass(60 + LEEWAY), 2);
    assert_eq!(get.read_all(), Read::End);
    assert_eq!(call.read_all(), Read::End);
}

/// L3: a drain ends the streams of listeners after the current event, also those that open later. Answers continue.
#[tokio::test]
async fn a_drain_ends_listeners() {
    let streams = Streams::new().await;
    let message = request("tools/call", json!({"name": "slow"})).to_string();
    let mut response = streams.open("POST", &[(SESSION, &streams.session), JSON], message, EVENT_STREAM).await;
    let mut get = streams.get().await;
    let mut amid = streams.get().await;
    let mut listener = listen(&streams).await;
    amid.events.send("data: 1");
    assert_eq!(amid.read(), piece("data: 1"));
    assert_eq!(get.read(), Read::Nothing);
    assert_eq!(listener.read(), Read::Nothing);
    assert_eq!(streams.fixture.settings.streams.drain(), 3);
    assert_eq!(get.woken(), 1);
    assert_eq!(listener.woken(), 1);
    assert_eq!(get.read(), Read::End);
    assert_eq!(listener.read(), piece(RESULT));
    assert_eq!(listener.read(), Read::End);
    amid.events.send("\n\n");
    assert_eq!(amid.read(), piece("\n\n"));
    assert_eq!(amid.read(), Read::End);
    let mut late = listen(&streams).await;
    assert_eq!(late.read(), piece(RESULT));
    assert_eq!(late.read(), Read::End);
    response.events.send("data: 2\n\n");
    assert_eq!(streams.pass(0), 0);
    assert_eq!(response.read(), piece("data: 2\n\n"));
    assert_eq!(response.read(), Read::Nothing);
    let told = streams.told();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().all(|(code, ..)| *code == "stream.shutdown"), "{told:?}");
}

/// L3: without authentication, a drain ends streams, too.
#[tokio::test]
async fn a_drain_ends_listeners_without_a_token() {
    let mut off = Streams::of(Fixture::open()).await;
    off.fixture.comes_without_token();
    let mut open = off.get().await;
    assert_eq!(off.fixture.settings.streams.drain(), 1);
    assert_eq!(open.read(), Read::End);
    assert_eq!(off.told(), [("stream.shutdown", true, None)]);
}

/// E9: the end of a session ends all its streams, and no others.
#[tokio::test]
async fn the_end_of_a_session_ends_its_streams() {
    let mut streams = Streams::new().await;
    let mut get = streams.get().await;
    let mut modern = listen(&streams).await;
    let message = request("tools/call", json!({"name": "slow"})).to_string();
    let mut response = streams.open("POST", &[(SESSION, &streams.session), JSON], message, EVENT_STREAM).await;
    let deleted = std::mem::take(&mut streams.session);
    streams.session = streams.fixture.initialize().await;
    let mut other = streams.get().await;
    assert_eq!(streams.fixture.send("DELETE", &[(SESSION, &deleted)], "").await.status, 200);
    assert_eq!(streams.pass(0), 2);
    assert_eq!(get.woken() + response.woken(), 0);
    assert_eq!(get.read(), Read::End);
    assert_eq!(response.read(), Read::End);
    assert_eq!(modern.read(), Read::Nothing);
    assert_eq!(other.read(), Read::Nothing);
    assert!(streams.told().iter().all(|(code, in_session, _)| *code == "stream.session_ended" && *in_session));
}

/// E12: an administrator ends the streams of a principal, with or without a session, and no others.
#[tokio::test]
async fn an_administrator_ends_selected_streams() {
    let streams = Streams::new().await;
    let mut get = streams.get().await;
    let mut modern = listen(&streams).await;
    assert_eq!(streams.open_streams(), 2);
    let registry = streams.fixture.settings.streams.clone();
    let end = |subject: &str| {
        registry.end(StreamEndReason::Administrator, |request| {
            request.principal.is_some_and(|principal| principal.subject() == Some(subject))
        })
    };
    assert_eq!(end("unknown-subject"), 0);
    assert_eq!(get.read(), Read::Nothing);
    assert_eq!(modern.read(), Read::Nothing);
    assert_eq!(end("alice"), 2);
    assert_eq!(get.read(), Read::End);
    assert_eq!(modern.read(), piece(RESULT));
    assert_eq!(modern.read(), Read::End);
    assert_eq!(end("alice"), 0, "they have ended already");
    assert!(streams.told().iter().all(|(code, ..)| *code == "stream.administrator"));
}
