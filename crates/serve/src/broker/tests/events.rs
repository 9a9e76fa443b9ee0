//! What is reported of the broker, and what ends with a grant.

use std::{fs, sync::Arc, time::Duration};

use portcullis_audit::{AuditSettings, AuditTarget, AuditTrail};
use portcullis_broker::{BrokerEvent, BrokerObserver as _, EndReason, GrantOwner};
use portcullis_metadata::{Issuer, ResourceUri, Scopes, SystemClock};
use portcullis_session::{Owner, Session, SessionTarget};
use portcullis_telemetry::metrics::Metrics;

use super::{super::observer::BrokerEvents, TestServer};

const BROKER: &str = "http://127.0.0.1:3000";
const OTHER: &str = "https://a.example";

fn events(server: &TestServer) -> BrokerEvents {
    BrokerEvents::new(
        server.state.load().process(),
        Issuer::parse(BROKER).unwrap(),
    )
}

fn open(server: &TestServer, issuer: &str, subject: &str, client: &str) -> Arc<Session> {
    let owner = Owner::Subject {
        issuer,
        subject,
        client: Some(client),
    };
    let target: SessionTarget = ResourceUri::parse("http://127.0.0.1:3000/mcp")
        .unwrap()
        .into();
    let state = server.state.load();
    let sessions = &state.process().sessions;
    let reservation = sessions.reserve(&target, owner, &Scopes::empty()).unwrap();
    let opened = reservation.open(Box::from(*b"backend"), None).unwrap();
    Arc::clone(opened.session())
}

const OWNER: GrantOwner<'_> = GrantOwner {
    subject: "alice",
    client_id: "one",
};

fn ended(reason: EndReason) -> BrokerEvent<'static> {
    BrokerEvent::GrantEnded {
        grant_id: "grant",
        owner: Some(OWNER),
        reason,
    }
}

fn end_not_stored(reason: EndReason) -> BrokerEvent<'static> {
    BrokerEvent::EndNotStored {
        grant_id: "grant",
        owner: Some(OWNER),
        reason,
    }
}

/// US1: the sessions of a user who lost access end with all clients, also if the end of the grant
/// cannot be stored. Those of other users, and of equal names of other issuers, go on.
#[tokio::test]
async fn sessions_end_with_the_access_of_their_user() {
    let reasons = [
        EndReason::UserEnded,
        EndReason::LoggedOut,
        EndReason::Administrator,
    ];
    for event in reasons
        .map(ended)
        .into_iter()
        .chain(reasons.map(end_not_stored))
    {
        let server = TestServer::new();
        let of_user = ["one", "two"].map(|client| open(&server, BROKER, "alice", client));
        let others = [
            open(&server, BROKER, "bob", "one"),
            open(&server, OTHER, "alice", "one"),
        ];
        events(&server).observe(&event);
        assert!(of_user.iter().all(|session| session.has_ended()));
        assert!(!others.iter().any(|session| session.has_ended()));
    }
}

/// A client that signs out, or that loses a grant to a replay, does not end the sessions of the
/// user's other clients.
#[tokio::test]
async fn sessions_outlive_a_single_grant() {
    let server = TestServer::new();
    let session = open(&server, BROKER, "alice", "two");
    for reason in [
        EndReason::Revoked,
        EndReason::CodeReplayed,
        EndReason::RefreshTokenReplayed,
    ] {
        events(&server).observe(&ended(reason));
    }
    assert!(!session.has_ended());
}

/// J4, J7: events are audited and counted; rejected requests, of which anybody can send many, are
/// only counted.
#[tokio::test]
async fn events_are_audited_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let clock = Arc::new(SystemClock::new());
    let settings = AuditSettings::new(AuditTarget::File(file.clone()));
    let trail = AuditTrail::start(&settings, None, 1, Arc::clone(&clock) as _).unwrap();
    let metrics = Metrics::new("1.0.0", 1, &*clock);
    let server = TestServer::observed(|observers| {
        observers.audit = Some(trail.audit().clone());
        observers.metrics = Some(Arc::clone(&metrics));
    });
    let events = events(&server);
    events.observe(&BrokerEvent::SignedIn {
        provider: "entra",
        subject: "alice",
        client_id: "one",
        grant_id: "grant",
    });
    events.observe(&BrokerEvent::Rejected {
        endpoint: "token",
        error: "invalid_grant",
        description: "the code is unknown",
    });
    events.observe(&ended(EndReason::UserEnded));
    let text = server.state.load().metrics().unwrap();
    for line in [
        "portcullis_broker_clients_registered_total 0",
        "portcullis_broker_sign_ins_total{provider=\"entra\",result=\"succeeded\"} 1",
        "portcullis_broker_rejected_total{endpoint=\"token\",error=\"invalid_grant\"} 1",
        "portcullis_broker_grants_ended_total{reason=\"grant.user_ended\"} 1",
        "portcullis_issuer_usable{issuer=\"http://127.0.0.1:3000\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }

    trail.finish(Duration::from_secs(60)).await;
    let records = fs::read_to_string(&file).unwrap();
    let records = records
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let records: Vec<_> = records
        .filter(|record| record["event"].as_str().unwrap().starts_with("broker."))
        .collect();
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!(records[0]["event"], "broker.signed_in");
    assert_eq!(records[0]["principal.subject"], "alice");
    assert_eq!(records[1]["grant.reason"], "grant.user_ended");
    assert_eq!(records[1]["principal.issuer"], BROKER);
}
