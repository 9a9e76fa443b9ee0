//! Ends that other processes have stored.

use portcullis_metadata::AccessTokenClaims;
use portcullis_state_store::records::RecordStore as _;

use super::*;
use crate::records::ENDS_BY_TIME;

/// Returns a clock that is `ahead` or `behind` another one.
fn clock_beside(fixture: &Fixture, ahead: Duration, behind: Duration) -> ManualClock {
    let now = fixture.clock.now().saturating_add(ahead);
    let clock = ManualClock::new();
    clock.set_unix(now.saturating_sub(behind));
    clock
}

/// TK5: an end is found although the clocks of the replicas differ by 5 s and the write took 4 s.
#[tokio::test]
async fn ends_are_found_although_clocks_differ() {
    const DIFFERENCE: Duration = Duration::from_secs(5);
    for (ahead, behind) in [(DIFFERENCE, Duration::ZERO), (Duration::ZERO, DIFFERENCE)] {
        let here = Fixture::new();
        let there = here.replica(clock_beside(&here, ahead, behind));
        there.store.load_ends().await.unwrap();
        for _ in 0..20 {
            let (id, _) = here.begin("alice").await;
            here.store.end_grant(&id).await.unwrap();
            // The others read meanwhile, and do not see the write yet.
            there.pass(Duration::from_secs(4));
            there.ends.set_read(there.clock.now());
            here.pass(Duration::from_secs(4));
            there.store.refresh_ends().await.unwrap();
            assert!(there.ends.contains(&id), "{ahead:?} {behind:?}");
        }
    }
}

/// TK8: a client that revokes the same tokens again and again fills no table.
#[tokio::test]
async fn repeated_ends_are_stored_once() {
    let fixture = Fixture::new();
    let (id, _) = fixture.begin("alice").await;
    for _ in 0..10 {
        fixture.store.end_grant(&id).await.unwrap();
        fixture.store.revoke_access_token("jti-1").await.unwrap();
        fixture.pass(Duration::from_secs(1));
    }
    assert_eq!(fixture.records.count(ENDS_BY_TIME).await.unwrap(), 2);
}

/// TK5: entries last as long as the access tokens.
#[tokio::test]
async fn shared_ends_expire_with_their_access_tokens() {
    let fixture = Fixture::new();
    let (id, _) = fixture.begin("alice").await;
    fixture.store.end_grant(&id).await.unwrap();
    let entries = || fixture.records.scan(ENDS_BY_TIME, &[], None, 10);
    fixture.pass(Lifetimes::default().access_token + LEEWAY - Duration::from_secs(1));
    assert_eq!(entries().await.unwrap().len(), 1);
    fixture.pass(Duration::from_secs(1));
    assert!(entries().await.unwrap().is_empty());
}

/// ST7: an entry that was sealed with a key that this replica does not have is an end.
#[tokio::test]
async fn an_end_that_cannot_be_read_counts() {
    let here = Fixture::new();
    let keys = BrokerKeys::parse(&BrokerKeys::generate().unwrap()).unwrap();
    let there = here.replica_with_keys(here.clock.clone(), Arc::new(keys));
    there.store.load_ends().await.unwrap();
    let (id, _) = here.begin("alice").await;
    here.store.end_grant(&id).await.unwrap();
    there.store.refresh_ends().await.unwrap();
    assert!(there.ends.contains(&id));
}

/// ST4: a replica that has never read the ends of others says nothing about tokens.
#[tokio::test]
async fn no_token_is_active_before_the_ends_are_known() {
    let fixture = Fixture::new();
    let store = BrokerStore {
        ends: Arc::new(Ends::incomplete()),
        ..fixture.store.clone()
    };
    let token = IssuedToken {
        id: Some("jti-1".into()),
        client_id: CLIENT.into(),
        grant_id: None,
        claims: AccessTokenClaims::parse(b"{}").unwrap(),
    };
    assert!(store.is_active(&token).await.is_err());
    store.refresh_ends().await.unwrap();
    assert!(store.is_active(&token).await.unwrap());
}
