//! Ends that must be recorded, and sessions that other processes opened.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use parking_lot::Mutex;
use portcullis_guard::GuardLayer;
use portcullis_session::{
    EndConfirmation, EndReason, EndTicket, LastUse, SessionEnd, SessionJournal, SessionKey,
    SessionObserver, SessionSettings, SessionStore,
};
use serde_json::json;
use tower::{Layer, ServiceExt, service_fn};

use super::fixture::*;
use crate::{Admitted, EndpointLayer};

/// A journal that confirms an end when the test does.
#[derive(Default)]
struct Slow {
    waiting: Mutex<Vec<EndConfirmation>>,
    is_incomplete: AtomicBool,
}

impl SessionJournal for Slow {
    fn record(&self, _end: &SessionEnd) -> EndTicket {
        let (confirmation, ticket) = EndTicket::pending();
        self.waiting.lock().push(confirmation);
        ticket
    }

    fn record_last_uses(&self, _uses: &[LastUse]) {}

    fn is_complete(&self) -> bool {
        !self.is_incomplete.load(Ordering::Relaxed)
    }
}

/// Returns another process with the keys of `Fixture`, and its journal.
fn process(max_total: usize) -> (Fixture, Arc<Slow>) {
    let mut fixture = Fixture::open();
    let journal = Arc::<Slow>::default();
    let mut settings = SessionSettings::new(SessionKey::new(0, &[7; 32]));
    settings.max_total = max_total;
    let observer = Arc::clone(&fixture.log) as Arc<dyn SessionObserver>;
    fixture.sessions = SessionStore::builder(settings)
        .clock(Arc::new(fixture.clock.clone()))
        .observer(observer)
        .journal(Arc::clone(&journal) as _)
        .build();
    fixture.settings.sessions = fixture.sessions.clone();
    (fixture, journal)
}

/// E12: the response to a DELETE waits until the end is recorded. It is 503 if that fails; the
/// session has ended either way. A repeated DELETE waits until an end that was not recorded is.
#[tokio::test]
async fn a_delete_is_confirmed_when_it_is_recorded() {
    for (is_recorded, status) in [(true, 200), (false, 503)] {
        let (fixture, journal) = process(10);
        let identifier = fixture.initialize().await;
        let headers = [(SESSION, &*identifier)];
        let mut delete = Box::pin(fixture.start("DELETE", &headers, Full::from("")));
        assert!(poll_once(&mut delete).is_pending());
        assert_eq!(fixture.ended(), [EndReason::Deleted]);
        let confirmation = journal.waiting.lock().pop().unwrap();
        assert!(poll_once(&mut delete).is_pending());
        if is_recorded {
            confirmation.confirm();
        } else {
            drop(confirmation);
        }
        let response = delete.await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(
            response.headers().get("retry-after").is_some(),
            !is_recorded
        );
        if !is_recorded {
            assert_eq!(fixture.decided(), (503, Some("session.end_not_recorded")));
        }
        let mut repeated = Box::pin(fixture.start("DELETE", &headers, Full::from("")));
        if !is_recorded {
            assert!(
                poll_once(&mut repeated).is_pending(),
                "the end is recorded again"
            );
            journal.waiting.lock().pop().unwrap().confirm();
        }
        assert_eq!(repeated.await.unwrap().status(), 400);
        assert!(journal.waiting.lock().is_empty());
    }
}

/// E12: a session of another process continues. At the total limit, and before the ends are known,
/// the response is 503.
#[tokio::test]
async fn sessions_of_other_processes_continue() {
    let (first, (second, journal)) = (Fixture::open(), process(1));
    let identifier = first.initialize().await;
    let headers = [(SESSION, &*identifier)];
    journal.is_incomplete.store(true, Ordering::Relaxed);
    for (retry_after, reason) in [("1", "session.not_ready"), ("30", "session.store_full")] {
        let response = second
            .post(&headers, request("tools/list", json!({})))
            .await;
        assert_eq!(response.error(), (503, -32603));
        assert_eq!(response.header("retry-after"), Some(retry_after));
        assert_eq!(second.decided(), (503, Some(reason)));
        assert_eq!(second.send("GET", &headers, "").await.status, 503);
        journal.is_incomplete.store(false, Ordering::Relaxed);
        if second.sessions.is_empty() {
            second.initialize().await;
        }
    }
    for session in second.sessions.all() {
        second.sessions.end(&session, EndReason::Idle);
    }
    assert_eq!(
        second
            .post(&headers, request("tools/list", json!({})))
            .await
            .status,
        200
    );
    assert_eq!(second.inner.last().header(SESSION), Some(BACKEND));
}

/// E12: the head of the response to `initialize` is held back until the revision is known, or until
/// a timeout.
#[tokio::test(start_paused = true)]
async fn a_held_head_has_a_time_limit() {
    let mut fixture = Fixture::open();
    fixture.settings.head_timeout = Duration::from_secs(60);
    let inner = service_fn(async |_: Admitted| {
        Ok::<_, Infallible>(
            Response::builder()
                .header("content-type", "application/json")
                .body(Stalled)
                .unwrap(),
        )
    });
    let endpoint = EndpointLayer::new(fixture.settings.clone())
        .unwrap()
        .layer(inner);
    let guarded = GuardLayer::new(Arc::clone(&fixture.settings.resource)).layer(endpoint);
    let body = Full::new(Bytes::from(initialize().to_string()));
    let request = fixture.request("POST", &[("content-type", "application/json")], body);
    let mut initialized = Box::pin(guarded.oneshot(request));
    assert!(poll_once(&mut initialized).is_pending());

    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(poll_once(&mut initialized).is_pending());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(initialized.await.unwrap().status(), 504);
    assert_eq!(fixture.decided(), (504, Some("upstream.head_timeout")));
    assert!(fixture.sessions.is_empty());
}
