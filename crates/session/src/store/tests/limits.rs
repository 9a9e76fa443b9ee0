//! The limits of sessions, in total and per owner, also under contention.

use std::{sync::Barrier, thread};

use super::*;

/// E9: reservations count toward both limits and release their capacity. No session in use is
/// evicted.
#[test]
fn limits_count_reservations() {
    let fixture = fixture_with(|settings| (settings.max_total, settings.max_per_owner) = (3, 2));
    let first = fixture.open(ALICE);
    let in_use = fixture.hold(&first);
    let held = fixture.reserve(ALICE).unwrap();
    assert_eq!(
        fixture.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit
    );

    drop(in_use);
    let second = fixture.open(MALLORY);
    assert_eq!(
        fixture.reserve(MALLORY).unwrap_err(),
        ReservationError::TotalLimit
    );
    assert_eq!(
        fixture.reserve(Owner::Anonymous).unwrap_err(),
        ReservationError::TotalLimit
    );

    drop(held);
    let third = fixture.open(ALICE);
    for (owner, session) in [(ALICE, &first), (MALLORY, &second), (ALICE, &third)] {
        drop(fixture.resolve(owner, session).unwrap());
    }
    assert_eq!(fixture.store.0.capacity.counts(), (3, 2));

    for session in [first, second, third] {
        fixture.store.end(&session, EndReason::Deleted);
    }
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}

/// E2, E9: a capacity permit counts until it is dropped, also after its reservation, and not in
/// addition to its session.
#[test]
fn a_capacity_permit_counts() {
    let fixture = fixture_with(|settings| settings.max_total = 1);
    let reservation = fixture.reserve(ALICE).unwrap();
    let held = reservation.capacity_permit();
    drop(reservation);
    assert_eq!(
        fixture.reserve(MALLORY).unwrap_err(),
        ReservationError::TotalLimit
    );
    drop(held);
    let reservation = fixture.reserve(ALICE).unwrap();
    let held = reservation.capacity_permit();
    let session = reservation.open(Box::default(), None).unwrap();
    drop(held);
    assert_eq!(fixture.store.0.capacity.counts(), (1, 1));
    fixture.store.end(&session, EndReason::Deleted);
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}

/// E9: a subject has a limit with all its clients together. At a client's own limit, a session
/// still replaces another one of the same client. Clients without subject have no further limit.
#[test]
fn a_subject_has_a_limit_with_all_clients() {
    let fixture = fixture_with(|settings| {
        (settings.max_per_owner, settings.max_per_subject) = (2, Some(3));
    });
    let clients = ["a", "b", "c"].map(|client| Owner::Subject {
        issuer: ISSUER,
        subject: "mallory",
        client: Some(client),
    });
    let [first, second, third] = clients;
    let opened = [fixture.open(first), fixture.open(first)];
    let reserved = fixture.reserve(second).unwrap();
    for owner in [second, third] {
        assert_eq!(
            fixture.reserve(owner).unwrap_err(),
            ReservationError::SubjectLimit
        );
    }
    drop(reserved);
    fixture.open(second);
    let replacing = fixture.open(first);
    assert_eq!(
        opened.iter().filter(|session| session.has_ended()).count(),
        1
    );
    assert_eq!(
        fixture.reserve(third).unwrap_err(),
        ReservationError::SubjectLimit
    );
    assert_eq!(fixture.store.0.capacity.subject_counts(), [3]);

    fixture.open(ALICE);
    (0..2).for_each(|_| {
        drop(fixture.open(Owner::Client {
            issuer: ISSUER,
            client: "a",
        }))
    });
    fixture.store.end(&replacing, EndReason::Deleted);
    fixture.open(third);
    fixture
        .store
        .all()
        .iter()
        .for_each(|session| drop(fixture.store.end(session, EndReason::Deleted)));
    assert!(fixture.store.0.capacity.subject_counts().is_empty());
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}

/// E9: anonymous sessions have no limit per owner, and rejections leave no entry of an owner.
#[test]
fn limits_at_their_edges() {
    let fixture = fixture_with(|settings| (settings.max_total, settings.max_per_owner) = (5, 0));
    assert_eq!(
        fixture.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit
    );
    let open: Vec<_> = (0..5).map(|_| fixture.open(Owner::Anonymous)).collect();
    drop(fixture.resolve(Owner::Anonymous, &open[0]).unwrap());
    assert_eq!(
        fixture.reserve(Owner::Anonymous).unwrap_err(),
        ReservationError::TotalLimit
    );
    assert_eq!(fixture.store.0.capacity.counts(), (5, 0));
}

/// E9: concurrent reservations never exceed the limits.
#[test]
fn limits_hold_under_contention() {
    let fixture = fixture_with(|settings| (settings.max_total, settings.max_per_owner) = (100, 7));
    let barrier = Barrier::new(8);
    let owners: Vec<String> = (0..20).map(|number| format!("user-{number}")).collect();
    let kept: Vec<Vec<(usize, InUse)>> = thread::scope(|scope| {
        let spawned: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let mut kept = Vec::new();
                    for round in 0..400 {
                        let number = round % owners.len();
                        let owner = Owner::Subject {
                            issuer: ISSUER,
                            subject: &owners[number],
                            client: None,
                        };
                        if let Ok(reservation) = fixture.reserve(owner) {
                            assert!(fixture.store.0.capacity.counts().0 <= 100);
                            if round % 3 == 0 {
                                drop(reservation);
                            } else {
                                kept.extend(
                                    reservation
                                        .open(Box::default(), None)
                                        .map(|session| (number, session)),
                                );
                            }
                        }
                    }
                    kept
                })
            })
            .collect();
        spawned
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let kept: Vec<_> = kept.into_iter().flatten().collect();
    assert_eq!(kept.len(), 100);

    for number in 0..owners.len() {
        assert!(kept.iter().filter(|(owner, _)| *owner == number).count() <= 7);
    }
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                for (_, session) in &kept {
                    fixture.store.end(session, EndReason::Deleted);
                }
            });
        }
    });
    assert_eq!(fixture.ended.take().len(), 100);
    assert_eq!(fixture.store.len(), 0);
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}
