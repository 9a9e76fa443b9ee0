//! Refresh tokens rotate, and a family has one line.

use portcullis_authorization_server::Rotation;
use proptest::prelude::*;

use super::*;

impl Fixture {
    async fn rotate(&self, token: &Secret) -> Rotation {
        let rotated = self.store.rotate_refresh_token(token.secret(), |_| Ok(()));
        rotated.await.unwrap()
    }

    /// Rotates a token that must be accepted, and returns its successor.
    async fn successor(&self, token: &Secret) -> Secret {
        match self.rotate(token).await {
            Rotation::Rotated {
                refresh_token: Some(refresh_token),
                ..
            } => refresh_token,
            other => panic!("{other:?}"),
        }
    }
}

/// RF2: five uses in a second, and a sixth after 7 m 45 s, get the same successor.
#[tokio::test]
async fn a_used_token_is_answered_with_the_same_successor() {
    let fixture = Fixture::new();
    let (_, first) = fixture.begin("alice").await;
    let second = fixture.successor(&first).await;
    for _ in 0..4 {
        assert!(fixture.successor(&first).await == second);
    }
    let third = fixture.successor(&second).await;
    fixture.pass(Duration::from_secs(7 * 60 + 45));
    assert!(fixture.successor(&first).await == second);
    assert!(fixture.successor(&second).await == third);
    assert!(third != second && second != first);
}

/// RF1: a used token that is presented later ends its family, also with other faults.
#[tokio::test]
async fn a_late_use_is_a_replay() {
    let fixture = Fixture::new();
    let (id, first) = fixture.begin("alice").await;
    fixture.successor(&first).await;
    fixture.pass(fixture.store.lifetimes.refresh_reuse);
    let rotated = fixture
        .store
        .rotate_refresh_token(first.secret(), |_| Err(rejection()));
    match rotated.await.unwrap() {
        Rotation::Replayed(grant) => assert_eq!(grant, id),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_a_time_for_repetitions_every_second_use_is_a_replay() {
    let fixture = Fixture::with(|settings| settings.lifetimes.refresh_reuse = Duration::ZERO);
    let (_, first) = fixture.begin("alice").await;
    let second = fixture.successor(&first).await;
    assert!(matches!(
        fixture.rotate(&first).await,
        Rotation::Replayed(_)
    ));
    fixture.successor(&second).await;
}

/// RF4: a failed check rotates nothing.
#[tokio::test]
async fn a_rejected_token_stays_current() {
    let fixture = Fixture::new();
    let (_, first) = fixture.begin("alice").await;
    let rejected = fixture
        .store
        .rotate_refresh_token(first.secret(), |_| Err(rejection()));
    assert!(matches!(rejected.await.unwrap(), Rotation::Rejected(_)));
    fixture.pass(fixture.store.lifetimes.refresh_reuse * 2);
    fixture.successor(&first).await;
}

/// RF2: processes of one user that refresh at once all get the same successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_uses_get_the_same_successor() {
    let fixture = Arc::new(Fixture::new());
    let (_, first) = fixture.begin("alice").await;
    let mut uses = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (fixture, token) = (Arc::clone(&fixture), first.clone());
        uses.spawn(async move { fixture.successor(&token).await });
    }
    let successors = uses.join_all().await;
    assert!(successors.iter().all(|token| *token == successors[0]));
}

#[tokio::test]
async fn the_tokens_of_an_ended_grant_are_unknown() {
    let fixture = Fixture::new();
    let (id, first) = fixture.begin("alice").await;
    let second = fixture.successor(&first).await;
    fixture.store.end_grant(&id).await.unwrap();
    for token in [&first, &second] {
        assert!(matches!(fixture.rotate(token).await, Rotation::Unknown));
    }
    // An end that is repeated is no error, and is reported once more without an owner.
    fixture.store.end_grant(&id).await.unwrap();
}

/// A grant lives for its lifetime after its last use.
#[tokio::test]
async fn use_extends_a_grant() {
    let fixture = Fixture::new();
    let lifetime = fixture.store.lifetimes.grant;
    let (_, token) = fixture.begin("alice").await;
    fixture.pass(lifetime - Duration::from_secs(1));
    let token = fixture.successor(&token).await;
    fixture.pass(lifetime - Duration::from_secs(1));
    let token = fixture.successor(&token).await;
    fixture.pass(lifetime);
    assert!(matches!(fixture.rotate(&token).await, Rotation::Unknown));
}

/// ST5: after a backup was restored, a genuine token that is newer than its record is accepted.
#[tokio::test]
async fn a_newer_token_moves_the_record_forward() {
    use portcullis_state_store::records::{Change, RecordStore as _, Write};

    let fixture = Fixture::new();
    let (id, first) = fixture.begin("alice").await;
    let backup = fixture
        .records
        .get(GRANTS, id.as_bytes())
        .await
        .unwrap()
        .unwrap();
    let second = fixture.successor(&first).await;
    let third = fixture.successor(&second).await;
    let change = Change {
        conditions: Vec::new(),
        writes: vec![Write::Put {
            table: GRANTS,
            key: id.as_bytes().into(),
            record: backup,
        }],
    };
    fixture.records.commit(change).await.unwrap();
    fixture.successor(&third).await;
    fixture.pass(fixture.store.lifetimes.refresh_reuse);
    assert!(matches!(
        fixture.rotate(&third).await,
        Rotation::Replayed(_)
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A plain model: tokens in a line. A use of the last one adds one; an earlier one gets its
    /// successor for ten minutes, and is a replay afterwards.
    #[test]
    fn rotation_follows_the_model(uses in prop::collection::vec((0_usize..6, 0_u64..400), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let fixture = Fixture::new();
            let (_, first) = fixture.begin("alice").await;
            let mut line = vec![first];
            let mut used: Vec<Duration> = Vec::new();
            let mut now = Duration::ZERO;
            for (back, seconds) in uses {
                now += Duration::from_secs(seconds);
                fixture.pass(Duration::from_secs(seconds));
                let position = line.len() - 1 - back.min(line.len() - 1);
                let rotation = fixture.rotate(&line[position]).await;
                let since = used.get(position).map(|used| now - *used);
                match (since, rotation) {
                    (None, Rotation::Rotated { refresh_token: Some(next), .. }) => {
                        used.push(now);
                        line.push(next);
                    }
                    (Some(since), Rotation::Rotated { refresh_token: Some(next), .. }) => {
                        assert!(since < Duration::from_secs(600));
                        assert!(next == line[position + 1]);
                    }
                    // Only 16 replaced tokens are answered.
                    (Some(since), Rotation::Replayed(_)) => {
                        assert!(since >= Duration::from_secs(600) || line.len() - position > 16);
                    }
                    (since, other) => panic!("{since:?} {other:?}"),
                }
            }
        });
    }
}
