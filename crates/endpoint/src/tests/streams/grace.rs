//! Responses that continue after their token has expired, but not without their authorization.

use serde_json::{Value, json};

use super::{
    super::fixture::*,
    harness::*,
    introspected::{Introspection, active},
    listening::modern_stream,
};
use crate::{EndpointSettings, StreamEndReason};

/// The default grace of responses, in seconds.
const GRACE: u64 = EndpointSettings::DEFAULT_RESPONSE_GRACE.as_secs();

async fn modern_call(streams: &Streams) -> OpenStream {
    modern_stream(streams, "tools/list", EVENT_STREAM).await
}

/// L3: the response to a request continues for 15 min after its token has expired, in all
/// revisions. The stream of a client that only listens ends with the token.
#[tokio::test]
async fn a_response_continues_after_its_token() {
    let streams = Streams::new().await;
    let mut get = streams.get_stream().await;
    let mut listener = modern_stream(&streams, "subscriptions/listen", EVENT_STREAM).await;
    let mut responses = [streams.call_stream().await, modern_call(&streams).await];
    assert_eq!(streams.advance_and_sweep(TOKEN_END), 2);
    assert_eq!(get.read_events(), Read::End);
    assert!(matches!(listener.read_events(), Read::Data(_)));
    assert_eq!(listener.read_events(), Read::End);
    for response in &mut responses {
        response.events.send("data: 1\n\n");
        assert_eq!(response.read_events(), data("data: 1\n\n"));
        assert_eq!(response.read_events(), Read::Pending);
    }

    assert_eq!(streams.advance_and_sweep(GRACE - 1), 0);
    assert_eq!(streams.advance_and_sweep(1), 2);
    for response in &mut responses {
        assert_eq!(response.read_events(), Read::End);
    }
    assert_eq!(streams.ended_codes(), ["stream.token_expired"; 4]);
}

/// L3: a newer token that is used during the grace extends the responses of its session.
#[tokio::test]
async fn a_newer_token_extends_a_response_in_its_grace() {
    let mut streams = Streams::new().await;
    let mut response = streams.call_stream().await;
    assert_eq!(streams.advance_and_sweep(TOKEN_END + GRACE - 1), 0);
    streams.use_token(streams.token("mcp:tools", 2000));
    assert_eq!(streams.call().await, 200);
    assert_eq!(streams.advance_and_sweep(1000), 0);
    assert_eq!(response.read_events(), Read::Pending);
}

/// L3: during the grace, a response ends at once with its session, and when an administrator or
/// changed rules end it.
#[tokio::test]
async fn the_grace_ends_with_the_authorization() {
    let mut streams = Streams::new().await;
    let mut in_session = streams.call_stream().await;
    let mut of_administrator = modern_call(&streams).await;
    assert_eq!(streams.advance_and_sweep(TOKEN_END + 1), 0);
    streams.use_token(streams.token("mcp:tools", 300));
    let headers = [(SESSION, streams.session.as_str())];
    let deleted = streams.fixture.send("DELETE", &headers, "").await;
    assert_eq!(deleted.status, 200);
    assert_eq!(streams.advance_and_sweep(0), 1);
    assert_eq!(in_session.read_events(), Read::End);

    let registry = streams.fixture.settings.streams.clone();
    assert_eq!(registry.end(StreamEndReason::Administrator, |_| true), 1);
    assert_eq!(of_administrator.read_events(), Read::End);
    streams.use_token(streams.token("mcp:tools", 60));
    let mut of_rules = modern_call(&streams).await;
    assert_eq!(streams.advance_and_sweep(TOKEN_END + 1), 0);
    assert_eq!(registry.end_unless(|_| false), 1);
    assert_eq!(of_rules.read_events(), Read::End);
    assert_eq!(
        streams.ended_codes(),
        [
            "stream.session_ended",
            "stream.administrator",
            "stream.configuration_changed"
        ]
    );
}

/// L3: an introspected token that the issuer reports as inactive before its expiration time is
/// revoked, and ends the response at once. After that time it has expired.
#[tokio::test]
async fn a_revoked_token_has_no_grace() {
    for (lifetime, ended, codes) in [
        (Some(1000), 2, ["stream.token_inactive"; 2]),
        (None, 2, ["stream.token_inactive"; 2]),
        (Some(60), 1, ["stream.token_expired"; 2]),
    ] {
        let introspection = Introspection::new(lifetime).await;
        let streams = &introspection.streams;
        let mut get = streams.get_stream().await;
        let mut response = streams.call_stream().await;
        assert_eq!(introspection.recheck_after(30).await, 0);
        introspection.set_response(&json!({"active": false}));
        assert_eq!(introspection.recheck_after(35).await, ended, "{lifetime:?}");
        assert_eq!(get.read_events(), Read::End);
        if ended == 1 {
            assert_eq!(response.read_events(), Read::Pending);
            assert_eq!(streams.advance_and_sweep(GRACE - 1), 0);
            assert_eq!(streams.advance_and_sweep(1), 1);
        }
        assert_eq!(response.read_events(), Read::End);
        assert_eq!(streams.ended_codes(), codes);
    }
}

/// L3: the grace of a token without an expiration time begins when its issuer reports that it has
/// expired, not later.
#[tokio::test]
async fn a_token_that_gets_an_expiry_has_a_grace() {
    let introspection = Introspection::new(None).await;
    let streams = &introspection.streams;
    let mut response = streams.call_stream().await;
    let mut expired: Value = active();
    expired["exp"] = json!(introspection.now() - 60);
    introspection.set_response(&expired);
    assert_eq!(introspection.recheck_after(30).await, 0);
    assert_eq!(streams.advance_and_sweep(GRACE - 1), 0);
    assert_eq!(streams.advance_and_sweep(1), 1);
    assert_eq!(response.read_events(), Read::End);
}

/// L3: without a grace, a response ends with its token.
#[tokio::test]
async fn without_a_grace_a_response_ends_with_its_token() {
    let mut fixture = Fixture::guarded("mcp:tools");
    fixture.settings.response_grace = std::time::Duration::ZERO;
    let streams = Streams::with_fixture(fixture).await;
    let mut responses = [streams.call_stream().await, modern_call(&streams).await];
    assert_eq!(streams.advance_and_sweep(TOKEN_END - 1), 0);
    assert_eq!(streams.advance_and_sweep(1), 2);
    for response in &mut responses {
        assert_eq!(response.read_events(), Read::End);
    }
}
