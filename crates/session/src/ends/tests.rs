//! Tests of tombstones and floors: which sessions they end, and their bounds.

use std::collections::HashSet;

use portcullis_metadata::ResourceUri;
use proptest::prelude::*;

use super::*;

const LIFETIME: u64 = 1_000;
const LIMITS: EndsLimits = EndsLimits {
    per_owner: 4,
    anonymous: 8,
    owners_per_subject: 3,
    tombstones: 20,
    scopes: 6,
};
const ISSUER: &str = "https://a.example";

fn owner(subject: &str) -> Owner<'_> {
    Owner::Subject {
        issuer: ISSUER,
        subject,
        client: Some("app"),
    }
}

fn target() -> SessionTarget {
    ResourceUri::parse("https://r.example/mcp").unwrap().into()
}

fn at(millis: u64) -> UnixTime {
    UnixTime::from_millis(millis)
}

fn ends() -> Ends {
    Ends::new(LIMITS, LIFETIME)
}

impl Ends {
    fn end(&self, subject: &str, session: u8, created: u64, now: u64) -> RaisedFloors {
        self.add(
            ScopeId::of_owner(owner(subject)),
            [session; 16],
            at(created),
            EndExtent::ByServer,
            at(now),
        )
    }

    fn has_ended(&self, subject: &str, session: u8, created: u64) -> bool {
        self.contains(owner(subject), &target(), &[session; 16], at(created), 0)
    }
}

/// E9, E12: a subject with many clients takes few entries. Its ended sessions stay ended, and no
/// other subject is affected.
#[test]
fn a_subject_with_many_clients_takes_few_entries() {
    let ends = ends();
    assert_eq!(ends.end("bob", 1, 5, 5), RaisedFloors::default());
    let client = |number: u64| format!("client-{number}");
    let mut raised = 0;
    for number in 0..100 {
        let client = client(number);
        let owner = Owner::Subject {
            issuer: ISSUER,
            subject: "mallory",
            client: Some(&client),
        };
        let id = ScopeId::of_owner(owner);
        let created = at(10 + number);
        assert_eq!(
            ends.add(id, [7; 16], created, EndExtent::ByServer, created),
            RaisedFloors::default()
        );
        raised += usize::from(
            ends.limit_subject(owner.subject_scope().unwrap(), id, created)
                .is_some(),
        );
        assert!(
            ends.scopes.len() <= 1 + 1 + LIMITS.owners_per_subject,
            "bob, and the floor and the clients of mallory"
        );
        assert!(ends.subjects.len() <= 1);
    }
    assert_eq!(raised, 97);
    for number in 0..100 {
        let client = client(number);
        let owner = Owner::Subject {
            issuer: ISSUER,
            subject: "mallory",
            client: Some(&client),
        };
        assert!(
            ends.contains(owner, &target(), &[7; 16], at(10 + number), 0),
            "{number}"
        );
    }
    assert!(!ends.has_ended("bob", 2, 5));
    assert!(ends.has_ended("bob", 1, 5));
    ends.prune(at(PRUNE_INTERVAL + LIFETIME));
    assert!(ends.subjects.is_empty() && ends.scopes.is_empty());
    assert_eq!(ends.tombstones.load(Ordering::SeqCst), 0);
}

/// E12: a tombstone ends one session of one owner, until the lifetime is over.
#[test]
fn a_tombstone_names_one_session() {
    const CREATED: u64 = PRUNE_INTERVAL;
    let ends = ends();
    assert_eq!(
        ends.end("alice", 1, CREATED, CREATED),
        RaisedFloors::default()
    );
    assert!(ends.has_ended("alice", 1, CREATED));
    assert!(!ends.has_ended("alice", 2, CREATED));
    assert!(!ends.has_ended("bob", 1, CREATED));
    assert!(!ends.has_ended("alice", 1, CREATED + 1));

    ends.prune(at(CREATED + LIFETIME - 1));
    assert_eq!(ends.all().len(), 1);
    ends.prune(at(CREATED + LIFETIME));
    assert_eq!(ends.all().len(), 1, "at most once a minute");

    ends.prune(at(2 * CREATED + LIFETIME));
    assert_eq!(ends.all().len(), 0);
    assert_eq!(ends.scopes.len(), 0);
    assert_eq!(ends.tombstones.load(Ordering::SeqCst), 0);
    assert_eq!(
        ends.end("alice", 1, 10, 10 + LIFETIME),
        RaisedFloors::default()
    );
    assert!(ends.all().is_empty(), "expired already");
}

/// E12: a floor is known, and so are lower ones.
#[test]
fn a_known_floor_is_recognized() {
    let ends = ends();
    for scope in [Some(ScopeId::of_owner(owner("alice"))), None] {
        assert!(!ends.has_floor(scope, at(0)));
        ends.raise(scope, at(10), at(10));
        assert!(ends.has_floor(scope, at(10)));
        assert!(ends.has_floor(scope, at(9)));
        assert!(!ends.has_floor(scope, at(11)));
    }
}

/// E8, E12: a tombstone of generations ends the older identifiers alone, and never becomes weaker.
#[test]
fn generations_end_one_by_one() {
    let ends = ends();
    let alice = ScopeId::of_owner(owner("alice"));
    let valid = || {
        let has_ended =
            |generation| ends.contains(owner("alice"), &target(), &[1; 16], at(10), generation);
        (0..5)
            .filter(|generation| !has_ended(*generation))
            .collect::<Vec<_>>()
    };
    for (extent, left) in [
        (EndExtent::GenerationsBelow(2), vec![2, 3, 4]),
        (EndExtent::GenerationsBelow(1), vec![2, 3, 4]),
        (EndExtent::GenerationsBelow(4), vec![4]),
        (EndExtent::ByServer, vec![]),
        (EndExtent::GenerationsBelow(3), vec![]),
    ] {
        ends.add(alice, [1; 16], at(10), extent, at(20));
        assert_eq!(valid(), left);
    }
    assert_eq!(ends.tombstones.load(Ordering::SeqCst), 1);
}

/// E10, E12: the end by the owner wins over that by the server, in any order, until a floor
/// replaces the tombstone. The end of another session or owner says nothing.
#[test]
fn an_end_by_the_owner_is_remembered() {
    let ends = ends();
    let alice = ScopeId::of_owner(owner("alice"));
    let is_by_owner =
        |subject, session| ends.is_ended_by_owner(owner(subject), &[session; 16], at(10));
    for (session, first, second) in [
        (1, EndExtent::ByOwner, EndExtent::ByServer),
        (2, EndExtent::ByServer, EndExtent::ByOwner),
        (3, EndExtent::ByOwner, EndExtent::GenerationsBelow(9)),
    ] {
        for extent in [first, second] {
            ends.add(alice, [session; 16], at(10), extent, at(20));
        }
        assert!(is_by_owner("alice", session));
        assert!(!is_by_owner("bob", session));
    }
    let by_server = EndExtent::ByServer;
    ends.add(alice, [1; 16], at(11), by_server, at(20));
    assert!(!ends.is_ended_by_owner(owner("alice"), &[1; 16], at(11)));

    assert!(is_by_owner("alice", 1));
    ends.raise(Some(alice), at(10), at(20));
    assert!(!is_by_owner("alice", 1));
}

/// E12: an owner with too many tombstones gets a floor, which ends no other owner's sessions. New
/// sessions are above it.
#[test]
fn an_owner_with_too_many_tombstones_gets_a_floor() {
    let ends = ends();
    for number in 0..4 {
        assert_eq!(
            ends.end("alice", number, 10 * u64::from(number), 40),
            RaisedFloors::default()
        );
    }
    assert!(!ends.has_ended("alice", 9, 0));
    assert_eq!(
        ends.end("alice", 4, 40, 40),
        RaisedFloors {
            owner: Some(at(0)),
            ..RaisedFloors::default()
        }
    );
    assert!(ends.has_ended("alice", 9, 0));
    assert!(!ends.has_ended("alice", 9, 1));
    assert!(!ends.has_ended("bob", 9, 0));
    assert_eq!(
        ends.end("alice", 5, 5, 40).owner,
        Some(at(5)),
        "the one that was created first goes first"
    );
    assert!((0..6).all(|number| ends.has_ended(
        "alice",
        number,
        [0, 10, 20, 30, 40, 5][usize::from(number)]
    )));
    assert_eq!(ends.next_creation(owner("alice"), &target(), at(3)), at(6));
    assert_eq!(
        ends.next_creation(owner("alice"), &target(), at(50)),
        at(50)
    );
    assert_eq!(ends.next_creation(owner("bob"), &target(), at(3)), at(3));
}

/// E12: at the limit of all tombstones, the owner that ends another session gets a floor.
#[test]
fn the_total_is_bounded_at_the_cost_of_the_owner_that_ends_sessions() {
    let ends = Ends::new(
        EndsLimits {
            tombstones: 5,
            ..LIMITS
        },
        LIFETIME,
    );
    for number in 0..4 {
        ends.end("alice", number, 10, 40);
    }
    assert_eq!(ends.end("bob", 1, 10, 40), RaisedFloors::default());
    assert_eq!(
        ends.end("carol", 1, 20, 40),
        RaisedFloors {
            owner: Some(at(20)),
            ..RaisedFloors::default()
        }
    );
    assert_eq!(ends.tombstones.load(Ordering::SeqCst), 5);
    assert!(ends.has_ended("carol", 1, 20));
    assert!(!ends.has_ended("carol", 2, 21));
    assert!(ends.has_ended("bob", 1, 10));
    assert!(!ends.has_ended("bob", 2, 10));
}

/// E12: callers without authentication are one owner, with a higher limit.
#[test]
fn anonymous_callers_have_a_higher_limit() {
    let ends = ends();
    let anonymous = ScopeId::of_owner(Owner::Anonymous);
    for number in 0..8 {
        assert_eq!(
            ends.add(anonymous, [number; 16], at(10), EndExtent::ByServer, at(20)),
            RaisedFloors::default()
        );
    }
    assert_eq!(
        ends.add(anonymous, [8; 16], at(11), EndExtent::ByServer, at(20))
            .owner,
        Some(at(10))
    );
}

/// E12: only too many owners cause a floor for all sessions. It includes the ends that it replaces.
#[test]
fn too_many_owners_raise_the_global_floor() {
    let ends = ends();
    let owners = ["a", "b", "c", "d", "e", "f", "g"];
    for (number, subject) in (0..).zip(owners) {
        let raised = ends.end(subject, 1, 100 + number, 200);
        assert_eq!(raised.global.is_some(), number == 6, "{raised:?}");
    }
    assert!(ends.scopes.len() <= 6);

    for (number, subject) in (0..).zip(owners) {
        assert!(ends.has_ended(subject, 1, 100 + number));
    }
    assert!(ends.has_ended("someone else", 1, 100));
    assert!(!ends.has_ended("someone else", 1, 200));

    // Expired entries go first.
    let ends = Ends::new(LIMITS, LIFETIME);
    for subject in &owners[..6] {
        ends.end(subject, 1, 100, 200);
    }
    assert_eq!(ends.end("g", 1, 2_000, 2_000), RaisedFloors::default());
    assert_eq!(ends.scopes.len(), 1);
}

/// E12: the floor of an issuer, a subject, a client, a resource or an upstream ends only its
/// sessions.
#[test]
fn wide_scopes_have_floors() {
    let here = SessionTarget::new(
        ResourceUri::parse("https://r.example/mcp").unwrap(),
        "http://127.0.0.1:1",
    );
    let elsewhere = SessionTarget::new(
        ResourceUri::parse("https://r.example/other").unwrap(),
        "http://127.0.0.1:1",
    );
    let moved = SessionTarget::new(here.resource().clone(), "http://127.0.0.1:2");
    let bob = Owner::Subject {
        issuer: ISSUER,
        subject: "bob",
        client: Some("other"),
    };
    let cases = [
        (EndScope::Issuer(ISSUER), [true, true, true, true]),
        (
            EndScope::Subject {
                issuer: ISSUER,
                subject: "alice",
            },
            [true, false, true, true],
        ),
        (
            EndScope::Client {
                issuer: ISSUER,
                client: "other",
            },
            [false, true, false, false],
        ),
        (
            EndScope::Resource(here.resource()),
            [true, true, false, true],
        ),
        (EndScope::Target(&here), [true, true, false, false]),
        (EndScope::Owner(owner("alice")), [true, false, true, true]),
        (EndScope::Issuer("https://b.example"), [false; 4]),
    ];
    for (scope, expected) in cases {
        let ends = ends();
        ends.raise(Some(scope.id()), at(10), at(20));
        let sessions = [
            (owner("alice"), &here),
            (bob, &here),
            (owner("alice"), &elsewhere),
            (owner("alice"), &moved),
        ];
        let has_ended = |created| {
            sessions.map(|(owner, target)| ends.contains(owner, target, &[1; 16], at(created), 0))
        };
        assert_eq!(has_ended(10), expected, "{scope:?}");
        assert_eq!(has_ended(11), [false; 4], "{scope:?}");
        let next =
            sessions.map(|(owner, target)| ends.next_creation(owner, target, at(5)) == at(11));
        assert_eq!(next, expected, "{scope:?}");
    }
    let ends = ends();
    ends.raise(None, at(10), at(20));
    assert!(ends.has_ended("alice", 1, 10));
    assert!(!ends.has_ended("alice", 1, 11));
}

proptest! {
    /// E12: all ended sessions stay ended, within the bounds, and also in a table that imports the
    /// ends of another one.
    #[test]
    fn ended_sessions_stay_ended(steps in proptest::collection::vec((0..9_u8, 0..12_u8, 0..30_u64), 0..150)) {
        let (ends, other) = (ends(), ends());
        let mut ended = HashSet::new();
        for (subject, session, created) in steps {
            ends.end(&subject.to_string(), session, created, 40);
            ended.insert((subject, session, created));
            for (subject, session, created) in &ended {
                prop_assert!(ends.has_ended(&subject.to_string(), *session, *created));
            }
            prop_assert!(ends.scopes.len() <= LIMITS.scopes);
            prop_assert!(ends.tombstones.load(Ordering::SeqCst) <= LIMITS.tombstones);
            let counted: usize = ends.scopes.iter().map(|ends| ends.tombstones().len()).sum();
            prop_assert_eq!(counted, ends.tombstones.load(Ordering::SeqCst));
        }
        for end in ends.all() {
            match end {
                SessionEnd::Session { owner, session, created, extent } => {
                    other.add(owner, session, created, extent, at(40));
                }
                SessionEnd::Floor { scope, created } => drop(other.raise(scope, created, at(40))),
            }
        }
        for subject in 0..9_u8 {
            for session in 0..12_u8 {
                for created in 0..30 {
                    let has_ended = |ends: &Ends| ends.has_ended(&subject.to_string(), session, created);
                    prop_assert!(has_ended(&other) || !has_ended(&ends));
                }
            }
        }
    }
}
