//! Codes are used once, and ends hold.

use portcullis_authorization_server::StoreError;

use super::*;

/// TK1: a failed check consumes nothing.
#[tokio::test]
async fn a_rejected_code_stays_usable() {
    let fixture = Fixture::new();
    let (code, _) = fixture.issue_code("alice").await;
    let rejected = fixture
        .store
        .redeem_code(code.secret(), None, |_| Err(rejection()));
    assert!(matches!(rejected.await.unwrap(), Redemption::Rejected(_)));
    assert!(matches!(
        fixture.redeem(&code).await,
        Redemption::Redeemed { .. }
    ));
}

/// TK2: of many uses at once, one succeeds, and the others are noticed as second uses.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_code_is_used_once() {
    let fixture = Arc::new(Fixture::new());
    let (code, grant) = fixture.issue_code("alice").await;
    let mut uses = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (fixture, code) = (Arc::clone(&fixture), code.clone());
        uses.spawn(async move { fixture.redeem(&code).await });
    }
    let all = uses.join_all().await;
    let redeemed = all
        .iter()
        .filter(|used| matches!(used, Redemption::Redeemed { .. }));
    assert_eq!(redeemed.count(), 1);
    let replayed = all.iter().filter(|used| match used {
        Redemption::Used(other) => other.id == grant.id,
        _ => false,
    });
    assert_eq!(replayed.count(), 15);
}

/// AU10: a code works for 60 seconds.
#[tokio::test]
async fn a_code_expires() {
    let fixture = Fixture::new();
    let (code, _) = fixture.issue_code("alice").await;
    fixture.pass(Duration::from_secs(60));
    assert!(matches!(fixture.redeem(&code).await, Redemption::Unknown));
    assert!(matches!(
        fixture.redeem(&Secret::new("other")).await,
        Redemption::Unknown
    ));
}

/// A second use is noticed for ten minutes.
#[tokio::test]
async fn a_used_code_is_remembered() {
    let fixture = Fixture::new();
    let (code, _) = fixture.issue_code("alice").await;
    fixture.redeem(&code).await;
    fixture.pass(USED_CODE_LIFETIME - Duration::from_secs(1));
    assert!(matches!(fixture.redeem(&code).await, Redemption::Used(_)));
    fixture.pass(Duration::from_secs(1));
    assert!(matches!(fixture.redeem(&code).await, Redemption::Unknown));
}

/// A grant that ended before its code was exchanged does not begin.
#[tokio::test]
async fn an_ended_grant_does_not_begin() {
    let fixture = Fixture::new();
    let (code, grant) = fixture.issue_code("alice").await;
    fixture.store.end_grant(&grant.id).await.unwrap();
    let redeemed = fixture
        .store
        .redeem_code(code.secret(), None, |_| Ok(()))
        .await;
    assert!(matches!(redeemed, Err(StoreError::GrantEnded)));
}

/// TK5: the end of a grant holds at once, and in the next process.
#[tokio::test]
async fn an_end_is_kept() {
    let fixture = Fixture::new();
    let (id, _) = fixture.begin("alice").await;
    let store = fixture.store.ending_for(EndReason::Administrator);
    assert!(!fixture.ends.contains(&id));
    store.end_grant(&id).await.unwrap();
    assert!(fixture.ends.contains(&id));
    assert_eq!(fixture.ended(), [(id.clone(), EndReason::Administrator)]);

    let next = BrokerStore {
        ends: Arc::new(Ends::default()),
        ..fixture.store.clone()
    };
    next.load_ends().await.unwrap();
    assert!(next.ends.contains(&id));
    // The last access token of the grant expires after an hour.
    fixture.pass(fixture.store.lifetimes.access_token + LEEWAY);
    let last = BrokerStore {
        ends: Arc::new(Ends::default()),
        ..fixture.store.clone()
    };
    last.load_ends().await.unwrap();
    assert!(!last.ends.contains(&id));
}

/// ST2: a record that was exchanged with another one is an error, and never an absent record.
#[tokio::test]
async fn an_exchanged_record_is_an_error() {
    use portcullis_state_store::records::{Change, RecordStore as _, Write};

    let fixture = Fixture::new();
    let (first, _) = fixture.begin("alice").await;
    let (second, _) = fixture.begin("bob").await;
    let record = fixture
        .records
        .get(GRANTS, first.as_bytes())
        .await
        .unwrap()
        .unwrap();
    let write = Write::Put {
        table: GRANTS,
        key: second.as_bytes().into(),
        record,
    };
    let change = Change {
        conditions: Vec::new(),
        writes: vec![write],
    };
    fixture.records.commit(change).await.unwrap();
    assert!(fixture.store.read_grant(&first).await.is_ok());
    let error = fixture.store.read_grant(&second).await.err().unwrap();
    assert!(matches!(error, StoreError::Unreadable(_)), "{error:?}");
}

/// One user and client have at most 50 grants. The one that was not used for the longest time goes.
#[tokio::test]
async fn the_grants_of_a_user_are_bounded() {
    let fixture = Fixture::new();
    let mut first = None;
    for _ in 0..=MAX_GRANTS_OF_USER_AND_CLIENT {
        let (id, _) = fixture.begin("alice").await;
        first.get_or_insert(id);
        fixture.pass(Duration::from_secs(1));
    }
    let grants = fixture.store.grants_of_user("alice", 1000).await.unwrap();
    assert_eq!(grants.len(), MAX_GRANTS_OF_USER_AND_CLIENT);
    // Its access tokens are rejected as well.
    let first = first.unwrap();
    assert!(!grants.contains(&first) && fixture.ends.contains(&first));
    assert_eq!(fixture.ended(), [(first, EndReason::Evicted)]);
    let (other, _) = fixture.begin("bob").await;
    assert_eq!(
        fixture.store.grants_of_user("bob", 1000).await.unwrap(),
        [other]
    );
}

/// Grants that began at the same time, each before it could count the others, end with the next
/// one.
#[tokio::test]
async fn several_surplus_grants_end_at_once() {
    let fixture = Fixture::new();
    let (first, _) = fixture.begin("alice").await;
    let begun = fixture.store.read_grant(&first).await.unwrap().unwrap();
    for number in 0..MAX_GRANTS_OF_USER_AND_CLIENT + 5 {
        let mut change = fixture.store.records.change();
        let id = format!("grant {number}");
        fixture
            .store
            .put_grant(&mut change, &id, &begun.value, begun.expires)
            .unwrap();
        assert!(change.commit().await.unwrap());
    }
    let (last, _) = fixture.begin("alice").await;
    let grants = fixture.store.grants_of_user("alice", 1000).await.unwrap();
    assert_eq!(grants.len(), MAX_GRANTS_OF_USER_AND_CLIENT);
    assert!(grants.contains(&last));
    assert_eq!(fixture.ended().len(), 7);
}

/// A user who signs in with many clients does not fill the table.
#[tokio::test]
async fn the_grants_of_a_user_with_many_clients_are_bounded() {
    let fixture = Fixture::new();
    let (first, _) = fixture.begin("alice").await;
    let begun = fixture.store.read_grant(&first).await.unwrap().unwrap();
    for number in 1..MAX_GRANTS_OF_USER as u64 {
        let mut grant = begun.value.clone();
        grant.terms.client_id = format!("client {}", number % 20).into();
        grant.last_used += number;
        let id = format!("grant {number}");
        let mut change = fixture.store.records.change();
        fixture
            .store
            .put_grant(&mut change, &id, &grant, begun.expires)
            .unwrap();
        assert!(change.commit().await.unwrap());
    }
    let (last, _) = fixture.begin("alice").await;
    let grants = fixture.store.grants_of_user("alice", 1000).await.unwrap();
    assert_eq!(grants.len(), MAX_GRANTS_OF_USER);
    assert!(grants.contains(&last) && !grants.contains(&first));
}

/// US5: grants are found by the session and by the user at the provider.
#[tokio::test]
async fn grants_are_found_by_their_sign_in() {
    let fixture = Fixture::new();
    let (id, _) = fixture.begin("alice").await;
    fixture.begin("bob").await;
    let store = &fixture.store;
    let find = |session, subject| store.grants_of_sign_in("google", session, subject, 10);
    assert_eq!(
        find(Some("session of alice"), None).await.unwrap(),
        std::slice::from_ref(&id)
    );
    assert_eq!(
        find(None, Some("at provider alice")).await.unwrap(),
        std::slice::from_ref(&id)
    );
    assert!(
        find(None, Some("session of alice"))
            .await
            .unwrap()
            .is_empty()
    );
    let other = store.grants_of_sign_in("entra", Some("session of alice"), None, 10);
    assert!(other.await.unwrap().is_empty());
    store.end_grant(&id).await.unwrap();
    assert!(
        find(Some("session of alice"), None)
            .await
            .unwrap()
            .is_empty()
    );
}

/// US5: a logout that names a session also ends the sign-ins of its user whose session is not
/// known, and none with another session.
#[tokio::test]
async fn a_logout_finds_sign_ins_without_a_session() {
    let fixture = Fixture::new();
    fixture.begin("alice").await;
    let (id, _) = fixture.begin("alice").await;
    let current = fixture.store.read_sign_in(&id).await.unwrap().unwrap();
    let mut sessionless = current.value.clone();
    sessionless.provider_session = None;
    let store = &fixture.store;
    let replaced = store.replace_sign_in(&id, &current, &sessionless).await;
    assert!(replaced.unwrap());
    let find = |subject| store.grants_of_sign_in("google", Some("unknown session"), subject, 10);
    let found = find(Some("at provider alice")).await.unwrap();
    assert_eq!(found, [id]);
    assert!(find(Some("at provider bob")).await.unwrap().is_empty());
    assert!(find(None).await.unwrap().is_empty());
}
