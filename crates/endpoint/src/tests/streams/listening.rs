//! Streams on which clients listen: their comments, their result, and their end with the session or
//! the server.

use serde_json::json;

use super::{harness::*, scripted::Headers};
use crate::{StreamEndReason, tests::fixture::*};

/// The silence after which a stream sends a comment, in seconds.
const COMMENT_INTERVAL: u64 = 15;
/// How long a stream waits for the end of an event, in seconds.
const EVENT_TIMEOUT: u64 = 10;

/// The result of `subscriptions/listen` for the id of [`modern`] messages.
const RESULT: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":\"complete\",\
                      \"_meta\":{\"io.modelcontextprotocol/subscriptionId\":7}}}\n\n";

/// Sends a request without a session, whose response has these headers.
pub(super) async fn modern_stream(
    streams: &Streams,
    method: &str,
    response: Headers,
) -> OpenStream {
    let headers = [
        (VERSION, "2026-07-28"),
        ("mcp-method", method),
        ("content-type", "application/json"),
    ];
    streams
        .open(
            "POST",
            &headers,
            modern(method, json!({"notifications": {}})).to_string(),
            response,
        )
        .await
}

/// Opens the stream of a client that listens without a session.
async fn listen(streams: &Streams) -> OpenStream {
    modern_stream(streams, "subscriptions/listen", EVENT_STREAM).await
}

/// L3: a stream that is silent for 15 s sends a comment, and another one 15 s later.
#[tokio::test]
async fn a_silent_stream_sends_comments() {
    let streams = Streams::new().await;
    let mut open = streams.get_stream().await;
    assert_eq!(open.read_frame(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(COMMENT_INTERVAL - 1), 0);
    assert_eq!(open.take_wakeups(), 0);
    assert_eq!(open.read_frame(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(1), 0);
    assert_eq!(open.take_wakeups(), 1);
    assert_eq!(open.read_frame(), data(COMMENT));
    assert_eq!(open.read_frame(), Read::Pending);

    open.events.send("data: 1\n\n");
    assert_eq!(open.read_frame(), data("data: 1\n\n"));
    assert_eq!(streams.advance_and_sweep(1), 0);
    assert_eq!(streams.advance_and_sweep(COMMENT_INTERVAL - 1), 0);
    assert_eq!(open.read_frame(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(1), 0);
    assert_eq!(open.read_frame(), data(COMMENT));
    assert_eq!(open.read_frame(), Read::Pending);
}

/// L3: no comment splits an event.
#[tokio::test]
async fn a_comment_waits_for_the_end_of_an_event() {
    let mut streams = Streams::new().await;
    streams.use_token(streams.token("mcp:tools", 600));
    let mut open = streams.get_stream().await;
    open.events.send("data: 1\n");
    assert_eq!(open.read_frame(), data("data: 1\n"));
    assert_eq!(streams.advance_and_sweep(1), 0);
    assert_eq!(streams.advance_and_sweep(COMMENT_INTERVAL), 0);
    assert_eq!(open.read_frame(), Read::Pending);
    open.events.send("\n");
    assert_eq!(open.read_frame(), data("\n"));
    assert_eq!(open.read_frame(), Read::Pending);
}

/// L3: no comment is added to bytes that are encoded or have a fixed length.
#[tokio::test]
async fn a_body_that_cannot_grow_has_no_comments() {
    const FIXED_LENGTH: Headers = &[
        ("content-type", "text/event-stream"),
        ("content-length", "100"),
    ];
    let mut streams = Streams::new().await;
    streams.use_token(streams.token("mcp:tools", 600));
    for response in [ENCODED_EVENT_STREAM, FIXED_LENGTH] {
        let mut get = streams
            .open(
                "GET",
                &[(SESSION, &streams.session)],
                String::new(),
                response,
            )
            .await;
        assert_eq!(
            streams.advance_and_sweep(COMMENT_INTERVAL),
            0,
            "{response:?}"
        );
        assert_eq!(get.read_frame(), Read::Pending, "{response:?}");
        drop(get);
        let mut listener = modern_stream(&streams, "subscriptions/listen", response).await;
        assert_eq!(
            streams.advance_and_sweep(COMMENT_INTERVAL + 5),
            0,
            "{response:?}"
        );
        assert_eq!(listener.read_frame(), Read::Pending, "{response:?}");
    }
}

/// L3: the stream of a modern listener ends with the result of its request, once, after the event
/// that has begun.
#[tokio::test]
async fn a_listener_receives_its_result() {
    let streams = Streams::new().await;
    let mut quiet = listen(&streams).await;
    let mut mid_event = listen(&streams).await;
    let mut incomplete = listen(&streams).await;
    for open in [&mut mid_event, &mut incomplete] {
        open.events.send("data: 1");
        assert_eq!(open.read_events(), data("data: 1"));
    }
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 3);
    assert_eq!(quiet.read_frame(), data(RESULT));
    assert_eq!(quiet.read_frame(), Read::End);
    assert!(quiet.events.is_dropped());
    assert!(quiet.body.is_end_stream());

    mid_event.events.send("\n\ndata: 2\n\n");
    assert_eq!(mid_event.read_events(), data("\n\n"));
    assert_eq!(mid_event.read_events(), data(RESULT));
    assert_eq!(mid_event.read_events(), Read::End);
    assert_eq!(streams.advance_and_sweep(EVENT_TIMEOUT), 0);
    assert_eq!(incomplete.read_events(), Read::Error);
    assert_eq!(incomplete.read_events(), Read::End);
}

/// L3: only the stream of a listener has a result.
#[tokio::test]
async fn other_streams_have_no_result() {
    let streams = Streams::new().await;
    let mut get = streams.get_stream().await;
    let mut call = modern_stream(&streams, "tools/list", EVENT_STREAM).await;
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(get.read_frame(), Read::End);
    assert_eq!(streams.advance_and_sweep(15 * 60), 1);
    assert_eq!(call.read_frame(), Read::End);
}

/// L3: a drain ends the streams of listeners after the current event, also those that open later.
/// Answers continue.
#[tokio::test]
async fn a_drain_ends_listeners() {
    let streams = Streams::new().await;
    let mut response = streams.call_stream().await;
    let mut get = streams.get_stream().await;
    let mut mid_event = streams.get_stream().await;
    let mut listener = listen(&streams).await;
    mid_event.events.send("data: 1");
    assert_eq!(mid_event.read_events(), data("data: 1"));
    assert_eq!(get.read_events(), Read::Pending);
    assert_eq!(listener.read_events(), Read::Pending);

    assert_eq!(streams.fixture.settings.streams.drain(), 3);
    assert_eq!(get.take_wakeups(), 1);
    assert_eq!(listener.take_wakeups(), 1);
    assert_eq!(get.read_events(), Read::End);
    assert_eq!(listener.read_events(), data(RESULT));
    assert_eq!(listener.read_events(), Read::End);

    mid_event.events.send("\n\n");
    assert_eq!(mid_event.read_events(), data("\n\n"));
    assert_eq!(mid_event.read_events(), Read::End);

    let mut late = listen(&streams).await;
    assert_eq!(late.read_events(), data(RESULT));
    assert_eq!(late.read_events(), Read::End);

    response.events.send("data: 2\n\n");
    assert_eq!(streams.advance_and_sweep(0), 0);
    assert_eq!(response.read_events(), data("data: 2\n\n"));
    assert_eq!(response.read_events(), Read::Pending);
    assert_eq!(streams.ended_codes(), ["stream.shutdown"; 4]);
}

/// L3: without authentication, a drain ends streams, too.
#[tokio::test]
async fn a_drain_ends_listeners_without_a_token() {
    let mut unauthenticated = Streams::with_fixture(Fixture::open()).await;
    unauthenticated.fixture.use_no_token();
    let mut open = unauthenticated.get_stream().await;
    assert_eq!(unauthenticated.fixture.settings.streams.drain(), 1);
    assert_eq!(open.read_events(), Read::End);
    let expected = Ended {
        code: "stream.shutdown",
        in_session: true,
        subject: None,
    };
    assert_eq!(unauthenticated.ended_streams(), [expected]);
}

/// E9: the end of a session ends all its streams, and no others.
#[tokio::test]
async fn the_end_of_a_session_ends_its_streams() {
    let mut streams = Streams::new().await;
    let mut get = streams.get_stream().await;
    let mut modern = listen(&streams).await;
    let mut response = streams.call_stream().await;
    let deleted = std::mem::take(&mut streams.session);
    streams.session = streams.fixture.initialize().await;
    let mut other = streams.get_stream().await;
    assert_eq!(
        streams
            .fixture
            .send("DELETE", &[(SESSION, &deleted)], "")
            .await
            .status,
        200
    );
    assert_eq!(streams.advance_and_sweep(0), 2);
    assert_eq!(get.take_wakeups(), 0);
    assert_eq!(response.take_wakeups(), 0);
    assert_eq!(get.read_events(), Read::End);
    assert_eq!(response.read_events(), Read::End);
    assert_eq!(modern.read_events(), Read::Pending);
    assert_eq!(other.read_events(), Read::Pending);
    assert_eq!(streams.ended_codes(), ["stream.session_ended"; 2]);
    assert!(streams.ended_streams().iter().all(|ended| ended.in_session));
}

/// E12: an administrator ends the streams of a principal, with or without a session, and no others.
#[tokio::test]
async fn an_administrator_ends_selected_streams() {
    let streams = Streams::new().await;
    let mut get = streams.get_stream().await;
    let mut modern = listen(&streams).await;
    assert_eq!(streams.open_streams(), 2);

    let registry = streams.fixture.settings.streams.clone();
    let end = |subject: &str| {
        registry.end(StreamEndReason::Administrator, |request| {
            request
                .principal
                .is_some_and(|principal| principal.subject() == Some(subject))
        })
    };
    assert_eq!(end("unknown-subject"), 0);
    assert_eq!(get.read_events(), Read::Pending);
    assert_eq!(modern.read_events(), Read::Pending);
    assert_eq!(end("alice"), 2);
    assert_eq!(get.read_events(), Read::End);
    assert_eq!(modern.read_events(), data(RESULT));
    assert_eq!(modern.read_events(), Read::End);
    assert_eq!(end("alice"), 0, "they have ended already");
    assert_eq!(streams.ended_codes(), ["stream.administrator"; 2]);
}
