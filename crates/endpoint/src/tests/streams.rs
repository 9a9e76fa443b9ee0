//! Event streams end with their token, after the event that has begun, and newer tokens extend
//! them.

mod grace;
mod harness;
mod introspected;
mod listening;
mod scripted;

use std::time::Duration;

use portcullis_testkit::TestIssuer;
use portcullis_verifier::{IntrospectionSettings, Validation};
use serde_json::json;

use super::fixture::*;
use harness::*;
use scripted::Events;

/// L3: a stream and its upstream end when the token and the leeway are over, immediately if no
/// event is incomplete.
#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let streams = Streams::new().await;
    let mut open = streams.get_stream().await;
    open.events.send("data: 1\n\n");
    assert_eq!(open.read_events(), data("data: 1\n\n"));
    assert_eq!(open.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(TOKEN_END - 1), 0);
    assert_eq!(open.take_wakeups(), 0);
    assert_eq!(open.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(1), 1);
    assert_eq!(open.take_wakeups(), 1);

    open.events.send("data: 2\n\n");
    assert!(!open.events.is_dropped());
    assert_eq!(open.read_events(), Read::End);
    assert!(open.events.is_dropped());
    assert!(open.body.is_end_stream());
    assert_eq!(open.read_events(), Read::End);
    assert_eq!(streams.open_streams(), 0);
    assert_eq!(streams.advance_and_sweep(1), 0);

    let expected = Ended {
        code: "stream.token_expired",
        in_session: true,
        subject: Some("alice".to_owned()),
    };
    assert_eq!(streams.ended_streams(), [expected]);
}

/// L3: an event that has begun is completed, and nothing of the next one is sent.
#[tokio::test]
async fn an_event_is_completed() {
    let streams = Streams::new().await;
    let mut open = streams.get_stream().await;
    open.events.send("data: 1\n\ndata: 2");
    assert_eq!(open.read_events(), data("data: 1\n\ndata: 2"));
    assert_eq!(open.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(open.read_events(), Read::Pending);
    open.events.send(" and more");
    open.events.send("\r\n\r\ndata: 3\r\n\r\n");
    assert_eq!(open.read_events(), data(" and more"));
    assert_eq!(open.read_events(), data("\r\n\r\n"));
    assert_eq!(open.read_events(), Read::End);
    assert_eq!(streams.ended_streams().len(), 1);
}

/// L3: an event that is not completed within 10 s fails, so that no client takes the part for the
/// whole event.
#[tokio::test]
async fn an_event_without_an_end_fails() {
    let streams = Streams::new().await;
    let mut open = streams.get_stream().await;
    open.events.send("data: 1");
    assert_eq!(open.read_events(), data("data: 1"));
    assert_eq!(open.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(open.take_wakeups(), 1);
    assert_eq!(open.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(9), 0);
    assert_eq!(open.take_wakeups(), 1);
    assert_eq!(open.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(1), 0);
    assert_eq!(open.take_wakeups(), 1);
    assert_eq!(open.read_events(), Read::Error);
    assert_eq!(open.read_events(), Read::End);
    assert_eq!(streams.open_streams(), 0);
    assert_eq!(streams.ended_streams().len(), 1);
}

/// L3: a stream also ends with its token before it is read for the first time, and while chunks are
/// ready.
#[tokio::test]
async fn a_stream_that_is_not_read_ends() {
    let streams = Streams::new().await;
    let mut unread = streams.get_stream().await;
    let mut behind = streams.get_stream().await;
    behind.events.send("data: 1\n");
    assert_eq!(behind.read_events(), data("data: 1\n"));
    for open in [&unread, &behind] {
        open.events.send("\ndata: 2\n\n");
    }
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 2);
    assert_eq!(unread.read_events(), Read::End);
    assert_eq!(behind.read_events(), data("\n"));
    assert_eq!(behind.read_events(), Read::End);
}

/// L3: the owner's newer token with at least the same scopes moves the end of the session's
/// streams.
#[tokio::test]
async fn a_newer_token_extends_the_streams_of_its_session() {
    let mut streams = Streams::new().await;
    let mut one = streams.get_stream().await;
    let mut other = streams.get_stream().await;
    streams.use_token(streams.token("mcp:tools mcp:more", 300));
    assert_eq!(streams.call().await, 200);

    // A token that expires earlier does not move the end back.
    streams.use_token(streams.token("mcp:tools mcp:more", 30));
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 0);
    assert_eq!(one.read_events(), Read::Pending);
    assert_eq!(other.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(240), 2);
    assert_eq!(one.read_events(), Read::End);
    assert_eq!(other.read_events(), Read::End);
}

/// L3: a newer token extends each stream for which its scopes are enough, and no other.
#[tokio::test]
async fn a_newer_token_with_fewer_scopes_extends_nothing() {
    let mut streams = Streams::new().await;
    let mut narrow = streams.get_stream().await;
    streams.use_token(streams.token("mcp:tools mcp:admin", 60));
    let mut wide = streams.get_stream().await;
    streams.use_token(streams.token("mcp:tools mcp:other", 300));
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(narrow.read_events(), Read::Pending);
    assert_eq!(wide.read_events(), Read::End);
}

/// E7, L3: tokens of other owners, and those in another session, extend nothing.
#[tokio::test]
async fn tokens_of_others_extend_nothing() {
    let mut streams = Streams::new().await;
    let mut open = streams.get_stream().await;
    streams.use_token(streams.token("mcp:tools", 300).subject("mallory"));
    assert_eq!(streams.call().await, 400);
    streams.use_token(streams.token("mcp:tools", 300).client_id("another-client"));
    assert_eq!(streams.call().await, 400);
    streams.use_token(streams.token("mcp:tools", 300));
    let first = std::mem::take(&mut streams.session);
    streams.session = streams.fixture.initialize().await;
    assert_eq!(streams.call().await, 200);
    assert!(first != streams.session);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(open.read_events(), Read::End);
}

/// L3: the token of a request that is refused extends nothing.
#[tokio::test]
async fn a_refused_request_extends_nothing() {
    let mut streams = Streams::new().await;
    let mut open = streams.get_stream().await;
    streams.use_token(streams.token("mcp:other", 300));
    assert_eq!(streams.call().await, 403);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(open.read_events(), Read::End);
}

/// L3: a stream that a newer, introspected token extends ends when that token is inactive, also if
/// the token that opened the stream was not introspected.
#[tokio::test]
async fn an_introspected_token_that_extends_a_stream_is_checked_again() {
    let streams = Streams::new().await;
    let mut open = streams.get_stream().await;

    // The settings change: the issuer introspects tokens. Sessions and streams continue.
    let mut changed = Fixture::guarded_by(|issuer| {
        issuer.validation = Validation::Introspection(IntrospectionSettings::new("portcullis"));
    });
    changed.settings.sessions = streams.fixture.sessions.clone();
    changed.settings.streams = streams.fixture.settings.streams.clone();
    changed.fetch.publish(&changed.test_issuer);
    let introspection = changed.test_issuer.endpoint("introspect");
    let active = json!({
        "active": true, "aud": TestIssuer::RESOURCE, "sub": "alice", "client_id": "test-client", "scope": "mcp:tools",
    });
    changed.fetch.serve(&introspection, 200, active.to_string());
    let newer = streams.token("mcp:tools", 600);
    changed.use_token(&newer);
    assert_eq!(
        changed
            .post(&[(SESSION, &streams.session)], request("echo", json!({})))
            .await
            .status,
        200
    );
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 0);
    assert_eq!(open.read_events(), Read::Pending);

    changed
        .fetch
        .serve(&introspection, 200, r#"{"active":false}"#);
    changed.clock.advance(MINUTE);
    let verifier = changed.settings.resource.verifier().unwrap();
    verifier
        .issuers()
        .iter()
        .for_each(|issuer| issuer.start_due_rechecks());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(changed.fetch.hits(&introspection), 2);
    assert_eq!(streams.advance_and_sweep(0), 1);
    assert_eq!(open.read_events(), Read::End);
    assert_eq!(streams.ended_codes(), ["stream.token_inactive"]);
}

/// L3: responses to POST that stream end as well, in a session and without one, where nothing
/// extends them.
#[tokio::test]
async fn responses_to_posts_end() {
    let mut fixture = Fixture::guarded("mcp:tools");
    fixture.settings.response_grace = Duration::ZERO;
    let mut streams = Streams::with_fixture(fixture).await;
    let json = ("content-type", "application/json");
    let mut legacy = streams.call_stream().await;
    let headers = [
        (VERSION, "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "slow"),
        json,
    ];
    let message = modern("tools/call", json!({"name": "slow"})).to_string();
    let mut modern = streams.open("POST", &headers, message, EVENT_STREAM).await;

    // The response to `initialize` is held back until it names the revision.
    let negotiated =
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}\n\n";
    let events = Events::default();
    events.send(negotiated);
    let mut opening = streams
        .open_with(
            "POST",
            &[json],
            initialize().to_string(),
            EVENT_STREAM,
            events,
        )
        .await;
    assert_eq!(opening.read_events(), data(negotiated));

    streams.use_token(streams.token("mcp:tools", 300));
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 2);
    assert_eq!(legacy.read_events(), Read::Pending);
    assert_eq!(modern.read_events(), Read::End);
    assert_eq!(opening.read_events(), Read::End);
    assert_eq!(streams.ended_codes(), ["stream.token_expired"; 2]);

    let in_session = streams
        .ended_streams()
        .iter()
        .filter(|ended| ended.in_session)
        .count();
    assert_eq!(in_session, 1);
}

/// L3: a response that is not an event stream is not registered and does not end. A stream without
/// a token does not end with time.
#[tokio::test]
async fn other_responses_do_not_end() {
    let streams = Streams::new().await;
    let get = [(SESSION, streams.session.as_str())];
    let mut plain = streams
        .open(
            "GET",
            &get,
            String::new(),
            &[("content-type", "application/json")],
        )
        .await;
    let mut unnamed = streams.open("GET", &get, String::new(), &[]).await;
    assert_eq!(streams.open_streams(), 0);
    assert_eq!(streams.advance_and_sweep(600), 0);
    assert_eq!(plain.read_events(), Read::Pending);
    assert_eq!(unnamed.read_events(), Read::Pending);

    let mut unauthenticated = Streams::with_fixture(Fixture::open()).await;
    unauthenticated.fixture.use_no_token();
    let mut open = unauthenticated.get_stream().await;
    assert_eq!(unauthenticated.open_streams(), 1);
    assert_eq!(unauthenticated.advance_and_sweep(600), 0);
    assert_eq!(open.read_events(), Read::Pending);
}

/// L3: an encoded stream ends immediately, because the ends of its events are unknown.
#[tokio::test]
async fn an_encoded_stream_ends_at_once() {
    let streams = Streams::new().await;
    let mut open = streams
        .open(
            "GET",
            &[(SESSION, &streams.session)],
            String::new(),
            ENCODED_EVENT_STREAM,
        )
        .await;
    open.events.send("some bytes");
    assert_eq!(open.read_events(), data("some bytes"));
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(open.read_events(), Read::End);
}

/// L3: the registry is as large as the number of open streams, however many there were.
#[tokio::test]
async fn a_stream_leaves_nothing_behind() {
    let mut streams = Streams::new().await;
    for _ in 0..3 {
        let open: Vec<_> = [streams.get_stream().await, streams.get_stream().await].into();
        assert_eq!(streams.open_streams(), 2);
        drop(open);
        assert!(streams.fixture.settings.streams.is_empty());
    }
    // Dropped streams do not keep a later stream from being extended.
    let mut open = streams.get_stream().await;
    streams.use_token(streams.token("mcp:tools", 300));
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 0);
    assert_eq!(open.read_events(), Read::Pending);
}

/// L3: a wake-up that is lost is repeated until the body has ended.
#[tokio::test]
async fn wake_ups_are_repeated() {
    let streams = Streams::new().await;
    let mut open = streams.get_stream().await;
    assert_eq!(open.read_events(), Read::Pending);
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 1);
    assert_eq!(open.take_wakeups(), 1);
    assert_eq!(streams.advance_and_sweep(1), 0);
    assert_eq!(open.take_wakeups(), 1);
    assert_eq!(open.read_events(), Read::End);
}
