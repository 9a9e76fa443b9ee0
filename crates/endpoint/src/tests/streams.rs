//! Event streams and what they depend on.

mod listening;
mod rig;

use serde_json::json;

use super::fixture::*;
use rig::*;

/// L3: a stream ends when its token and the leeway are over, at once where no event is incomplete, and its upstream with it.
#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let streams = Streams::new().await;
    let mut open = streams.get().await;
    open.events.send("data: 1\n\n");
    assert_eq!(open.read(), piece("data: 1\n\n"));
    assert_eq!(open.read(), Read::Nothing);
    assert_eq!(streams.pass(60 + LEEWAY - 1), 0);
    assert_eq!(open.woken(), 0);
    assert_eq!(open.read(), Read::Nothing);
    assert_eq!(streams.pass(1), 1);
    assert_eq!(open.woken(), 1);
    open.events.send("data: 2\n\n");
    assert!(!open.events.is_dropped());
    assert_eq!(open.read(), Read::End);
    assert!(open.events.is_dropped());
    assert!(open.body.is_end_stream());
    assert_eq!(open.read(), Read::End);
    assert_eq!(streams.open_streams(), 0);
    assert_eq!(streams.pass(1), 0);
    assert_eq!(streams.told(), [("stream.token_expired", true, Some("alice".to_owned()))]);
}

/// L3: an event that has begun is completed, and nothing of the next one is sent.
#[tokio::test]
async fn an_event_is_completed() {
    let streams = Streams::new().await;
    let mut open = streams.get().await;
    open.events.send("data: 1\n\ndata: 2");
    assert_eq!(open.read(), piece("data: 1\n\ndata: 2"));
    assert_eq!(open.read(), Read::Nothing);
    assert_eq!(streams.pass(60 + LEEWAY), 1);
    assert_eq!(open.read(), Read::Nothing);
    open.events.send(" and more");
    open.events.send("\r\n\r\ndata: 3\r\n\r\n");
    assert_eq!(open.read(), piece(" and more"));
    assert_eq!(open.read(), piece("\r\n\r\n"));
    assert_eq!(open.read(), Read::End);
    assert_eq!(streams.told().len(), 1);
}

/// L3: an event that is not completed within 10 s fails, so that no client takes its part for a whole.
#[tokio::test]
async fn an_event_without_an_end_fails() {
    let streams = Streams::new().await;
    let mut open = streams.get().await;
    open.events.send("data: 1");
    assert_eq!(open.read(), piece("data: 1"));
    assert_eq!(open.read(), Read::Nothing);
    assert_eq!(streams.pass(60 + LEEWAY), 1);
    assert_eq!(open.woken(), 1);
    assert_eq!(open.read(), Read::Nothing);
    assert_eq!(streams.pass(9), 0);
    assert_eq!(open.woken(), 1);
    assert_eq!(open.read(), Read::Nothing);
    assert_eq!(streams.pass(1), 0);
    assert_eq!(open.woken(), 1);
    assert_eq!(open.read(), Read::Failure);
    assert_eq!(open.read(), Read::End);
    assert_eq!(streams.open_streams(), 0);
    assert_eq!(streams.told().len(), 1);
}

/// L3: the end of a token is noticed also before the stream is read for the first time, and in the midst of what is ready.
#[tokio::test]
async fn a_stream_that_is_not_read_ends() {
    let streams = Streams::new().await;
    let mut unread = streams.get().await;
    let mut behind = streams.get().await;
    behind.events.send("data: 1\n");
    assert_eq!(behind.read(), piece("data: 1\n"));
    for open in [&unread, &behind] {
        open.events.send("\ndata: 2\n\n");
    }
    assert_eq!(streams.pass(60 + LEEWAY), 2);
    assert_eq!(unread.read(), Read::End);
    assert_eq!(behind.read(), piece("\n"));
    assert_eq!(behind.read(), Read::End);
}

/// L3: the owner's newer token with at least the same scopes moves the end of the session's streams.
#[tokio::test]
async fn a_newer_token_extends_the_streams_of_its_session() {
    let mut streams = Streams::new().await;
    let mut one = streams.get().await;
    let mut other = streams.get().await;
    streams.comes_with(300, "mcp:tools mcp:more", |token| token);
    assert_eq!(streams.call().await, 200);
    // An older token takes nothing back.
    streams.comes_with(30, "mcp:tools mcp:more", |token| token);
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.pass(60 + LEEWAY), 0);
    assert_eq!(one.read(), Read::Nothing);
    assert_eq!(other.read(), Read::Nothing);
    assert_eq!(streams.pass(240), 2);
    assert_eq!(one.read(), Read::End);
    assert_eq!(other.read(), Read::End);
}

/// L3: a newer token extends each stream for which its scopes are enough, and no other.
#[tokio::test]
async fn a_newer_token_with_fewer_scopes_extends_nothing() {
    let mut streams = Streams::new().await;
    let mut narrow = streams.get().await;
    streams.comes_with(60, "mcp:tools mcp:admin", |token| token);
    let mut wide = streams.get().await;
    streams.comes_with(300, "mcp:tools mcp:other", |token| token);
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.pass(60 + LEEWAY), 1);
    assert_eq!(narrow.read(), Read::Nothing);
    assert_eq!(wide.read(), Read::End);
}

/// E7, L3: tokens of somebody else, and those in another session, extend nothing.
#[tokio::test]
async fn tokens_of_others_extend_nothing() {
    let mut streams = Streams::new().await;
    let mut open = streams.get().await;
    streams.comes_with(300, "mcp:tools", |token| token.subject("mallory"));
    assert_eq!(streams.call().await, 400);
    streams.comes_with(300, "mcp:tools", |token| token.client_id("another-client"));
    assert_eq!(streams.call().await, 400);
    streams.comes_with(300, "mcp:tools", |token| token);
    let first = std::mem::take(&mut streams.session);
    streams.session = streams.fixture.initialize().await;
    assert_eq!(streams.call().await, 200);
    assert!(first != streams.session);
    assert_eq!(streams.pass(60 + LEEWAY), 1);
    assert_eq!(open.read(), Read::End);
}

/// L3: the token of a request that is refused extends nothing.
#[tokio::test]
async fn a_refused_request_extends_nothing() {
    let mut streams = Streams::new().await;
    let mut open = streams.get().await;
    streams.comes_with(300, "mcp:other", |token| token);
    assert_eq!(streams.call().await, 403);
    assert_eq!(streams.pass(60 + LEEWAY), 1);
    assert_eq!(open.read(), Read::End);
}

/// L3: responses to POST that stream end as well, in a session and without one, where nothing extends them.
#[tokio::test]
async fn responses_to_posts_end() {
    let mut streams = Streams::new().await;
    let json = ("content-type", "application/json");
    let message = request("tools/call", json!({"name": "slow"})).to_string();
    let mut legacy = streams.open("POST", &[(SESSION, &streams.session), json], message, EVENT_STREAM).await;
    let headers = [(VERSION, "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "slow"), json];
    let message = modern("tools/call", json!({"name": "slow"})).to_string();
    let mut modern = streams.open("POST", &headers, message, EVENT_STREAM).await;
    // The response to `initialize` is held back until it names the revision.
    let negotiated = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}\n\n";
    let events = Events::default();
    events.send(negotiated);
    let mut opening = streams.open_with("POST", &[json], initialize().to_string(), EVENT_STREAM, events).await;
    assert_eq!(opening.read(), piece(negotiated));
    streams.comes_with(300, "mcp:tools", |token| token);
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.pass(60 + LEEWAY), 2);
    assert_eq!(legacy.read(), Read::Nothing);
    assert_eq!(modern.read(), Read::End);
    assert_eq!(opening.read(), Read::End);
    let mut told: Vec<_> = streams.told().into_iter().map(|(code, in_session, _)| (code, in_session)).collect();
    told.sort_unstable();
    assert_eq!(told, [("stream.token_expired", false), ("stream.token_expired", true)]);
}

/// L3: what is no event stream is not registered and does not end. A stream without a token does not end with time.
#[tokio::test]
async fn other_responses_do_not_end() {
    let streams = Streams::new().await;
    let get = [(SESSION, streams.session.as_str())];
    let mut plain = streams.open("GET", &get, String::new(), &[("content-type", "application/json")]).await;
    let mut unnamed = streams.open("GET", &get, String::new(), &[]).await;
    assert_eq!(streams.open_streams(), 0);
    assert_eq!(streams.pass(600), 0);
    assert_eq!(plain.read(), Read::Nothing);
    assert_eq!(unnamed.read(), Read::Nothing);

    let mut off = Streams::of(Fixture::open()).await;
    off.fixture.comes_without_token();
    let mut open = off.get().await;
    assert_eq!(off.open_streams(), 1);
    assert_eq!(off.pass(600), 0);
    assert_eq!(open.read(), Read::Nothing);
}

/// L3: where events end in encoded bytes is not known: such a stream ends where it is.
#[tokio::test]
async fn an_encoded_stream_ends_at_once() {
    let streams = Streams::new().await;
    const ENCODED: &[(&str, &str)] = &[("content-type", "text/event-stream"), ("content-encoding", "gzip")];
    let mut open = streams.open("GET", &[(SESSION, &streams.session)], String::new(), ENCODED).await;
    open.events.send("some bytes");
    assert_eq!(open.read(), piece("some bytes"));
    assert_eq!(streams.pass(60 + LEEWAY), 1);
    assert_eq!(open.read(), Read::End);
}

/// L3: the registry is as large as the number of open streams, however many there were.
#[tokio::test]
async fn a_stream_leaves_nothing_behind() {
    let mut streams = Streams::new().await;
    for _ in 0..3 {
        let open: Vec<_> = [streams.get().await, streams.get().await].into();
        assert_eq!(streams.open_streams(), 2);
        drop(open);
        assert!(streams.fixture.settings.streams.is_empty());
    }
    // Those that are gone hold nothing back, and those that come later are extended.
    let mut open = streams.get().await;
    streams.comes_with(300, "mcp:tools", |token| token);
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.pass(60 + LEEWAY), 0);
    assert_eq!(open.read(), Read::Nothing);
}

/// L3: a wake-up that is lost is repeated until the body has ended.
#[tokio::test]
async fn wake_ups_are_repeated() {
    let streams = Streams::new().await;
    let mut open = streams.get().await;
    assert_eq!(open.read(), Read::Nothing);
    assert_eq!(streams.pass(60 + LEEWAY), 1);
    assert_eq!(open.woken(), 1);
    assert_eq!(streams.pass(1), 0);
    assert_eq!(open.woken(), 1);
    assert_eq!(open.read(), Read::End);
}
