//! Requests about grants to a server with a broker, and to one without.

use std::{sync::Arc, time::Duration};

use portcullis_config::{from_text, plan::Plan};
use portcullis_metadata::{Clock, SystemClock};
use portcullis_state_store::records::{
    Change, MemoryRecords, RecordStore as _, StoredRecord, Table, Write,
};
use portcullis_telemetry::{AccessLog, LogFormat};

use super::*;
use crate::{
    broker::{persistence::BrokerPersistence, process::BrokerProcess},
    observers::Observers,
    persistence::session_persistence::SessionPersistence,
    state::Process,
};

const WITHOUT: &str = r#"
    base_url = "http://127.0.0.1:3000"
    state_dir = "off"
    [[issuer]]
    issuer = "https://a.example"
    [[resource]]
    endpoint = "/mcp"
    upstream = "demo"
"#;

const WITH: &str = r#"
    base_url = "http://127.0.0.1:3000"
    state_dir = "off"
    [broker]
    [[broker.provider]]
    kind = "keycloak"
    issuer = "https://auth.example.com/realms/prod"
    client_id = "portcullis"
    client_secret = { env = "PATH" }
    [[resource]]
    endpoint = "/mcp"
    upstream = "demo"
"#;

/// The state of a server, and the records of its broker.
fn state(config: &str) -> (ServerState, Arc<MemoryRecords>) {
    let plan = Plan::new(&from_text(config).unwrap()).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let access = Arc::new(AccessLog::without_writer(LogFormat::default()));
    let observers = Observers {
        access,
        audit: None,
        metrics: None,
        traces: None,
    };
    let (process, _) = Process::new(
        &plan,
        crate::Product::default(),
        Arc::clone(&clock),
        observers,
        &mut SessionPersistence::in_memory(&plan),
    );
    let records = Arc::new(MemoryRecords::new(Arc::clone(&clock)));
    let broker = plan.broker.is_some().then(|| {
        let mut persistence = BrokerPersistence::in_memory(&plan, clock).unwrap();
        persistence.records = Arc::clone(&records) as _;
        BrokerProcess::new(persistence)
    });
    let process = process.with_broker(broker);
    (ServerState::new(&plan, &process, None).unwrap(), records)
}

async fn end_with(
    state: &ServerState,
    body: &str,
) -> (Result<EndGrantsResult, AdminError>, Option<usize>) {
    let mut ended = None;
    let request = EndGrants::parse(body.as_bytes()).unwrap();
    let result = end(state, &request, &mut ended).await;
    (result, ended)
}

/// E12: without a broker, the error says so.
#[tokio::test]
async fn a_server_without_a_broker_has_no_grants() {
    let (state, _) = state(WITHOUT);
    let listed = list(&state, &ListGrants::parse("").unwrap()).await;
    let (ended, count) = end_with(&state, r#"{"subject":"alice"}"#).await;
    for error in [listed.unwrap_err(), ended.unwrap_err()] {
        assert_eq!(error.status, StatusCode::NOT_FOUND);
        assert_eq!(error.code, "admin.broker_missing");
        assert!(error.message.contains("[broker]"), "{}", error.message);
    }
    assert_eq!(count, None);
}

/// E12: a grant that does not exist is an error; a user without grants is none.
#[tokio::test]
async fn an_unknown_grant_is_an_error() {
    let (state, _) = state(WITH);
    let page = list(&state, &ListGrants::parse("limit=1").unwrap()).await;
    assert!(page.unwrap().grants.is_empty());
    let (error, count) = end_with(&state, r#"{"grant":"other"}"#).await;
    let error = error.unwrap_err();
    assert_eq!(
        (error.status, error.code),
        (StatusCode::NOT_FOUND, "admin.grant_unknown")
    );
    assert_eq!(count, Some(0));
    let (result, count) = end_with(&state, r#"{"subject":"alice"}"#).await;
    assert_eq!(result.unwrap().grants_ended, 0);
    assert_eq!(count, Some(0));
}

/// ST2: grants that no key opens are counted. The error for one of them does not say that it is
/// unknown.
#[tokio::test]
async fn unreadable_grants_are_reported() {
    let (state, records) = state(WITH);
    let record = StoredRecord {
        value: b"other".to_vec().into(),
        expires: state
            .clock()
            .now()
            .saturating_add(Duration::from_secs(3600)),
    };
    let change = Change {
        conditions: Vec::new(),
        writes: vec![Write::Put {
            table: Table("broker_grants"),
            key: b"grant".as_slice().into(),
            record,
        }],
    };
    records.commit(change).await.unwrap();
    let page = list(&state, &ListGrants::parse("").unwrap()).await.unwrap();
    assert_eq!((page.grants.len(), page.unreadable), (0, 1));
    let (error, _) = end_with(&state, r#"{"grant":"grant"}"#).await;
    let error = error.unwrap_err();
    assert!(
        error.message.contains("cannot be read"),
        "{}",
        error.message
    );
    let (result, _) = end_with(&state, r#"{"provider":"keycloak"}"#).await;
    assert_eq!(result.unwrap().unreadable, 1);
}

#[test]
fn an_entry_has_the_times_and_ages() {
    let grant = GrantSummary {
        id: "grant".into(),
        subject: "idp_alice".into(),
        client_id: "client".into(),
        provider: Some("entra".into()),
        scopes: "mcp:tools".into(),
        resource: None,
        begun: UnixTime::from_secs(1_800_000_000),
        last_used: UnixTime::from_secs(1_800_000_060),
    };
    let entry = entry(&grant, UnixTime::from_secs(1_800_000_090));
    assert_eq!(entry.begun, "2027-01-15T08:00:00.000Z");
    assert_eq!(entry.last_used, "2027-01-15T08:01:00.000Z");
    assert_eq!((entry.age_seconds, entry.unused_seconds), (90, 30));
    assert_eq!(entry.provider.as_deref(), Some("entra"));
}
