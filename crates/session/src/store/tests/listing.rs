//! Pages of sessions contain each one once; ends also apply to sessions in no table.

use super::{process::two, *};
use crate::{live_session::LogHash, scope::EndScope};

/// E12: the pages contain each session once, in the order of the log hashes, and none that has
/// ended.
#[test]
fn pages_have_each_session_once() {
    let fixture = fixture();
    let sessions: Vec<_> = (0..7).map(|_| fixture.open(ALICE)).collect();
    fixture.open(MALLORY);
    fixture.store.end(&sessions[0], EndReason::Deleted);
    let is_alices = |session: &Session| session.owner() == ALICE;
    let (mut listed, mut after): (Vec<LogHash>, _) = (Vec::new(), None);
    loop {
        let page = fixture.store.list(is_alices, after, 2);
        assert!(page.sessions.len() <= 2);
        listed.extend(page.sessions.iter().map(|listed| listed.session.log_hash()));
        after = listed.last().copied();
        if !page.has_more {
            break;
        }
    }
    let mut expected: Vec<_> = sessions[1..]
        .iter()
        .map(|session| session.log_hash())
        .collect();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    assert_eq!(fixture.store.list(|_| true, None, 0).sessions.len(), 0);
    assert!(
        fixture
            .store
            .find(expected[0])
            .is_some_and(|found| found.log_hash() == expected[0])
    );
    assert!(fixture.store.find(sessions[0].log_hash()).is_none());
}

/// E12: the age counts from the creation of the session, and the unused time from its last use in
/// this process.
#[test]
fn ages_and_uses_are_listed() {
    let (first, second) = two();
    let identifier = first.open();
    first.fixture.clock.advance(Duration::from_secs(60));
    let in_use = second.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    let listed = |process: &super::process::Process| {
        process
            .fixture
            .store
            .list(|_| true, None, 9)
            .sessions
            .remove(0)
    };
    let here = listed(&first);
    let there = listed(&second);
    assert_eq!(here.age, Duration::from_secs(60));
    assert_eq!(here.unused_for, Duration::from_secs(60));
    assert!(!here.is_in_use);
    assert_eq!(there.age, Duration::from_secs(60));
    assert_eq!(there.unused_for, Duration::ZERO);
    assert!(there.is_in_use);
    assert!(!here.session.is_adopted());
    assert!(there.session.is_adopted());
    drop(in_use);
}

/// E12: the end of a subject or a client also ends its sessions in no table, and no others.
#[test]
fn subjects_and_clients_end_where_they_are_in_no_table() {
    let Owner::Subject {
        issuer,
        subject,
        client: Some(client),
    } = ALICE
    else {
        unreachable!()
    };
    for scope in [
        EndScope::Subject { issuer, subject },
        EndScope::Client { issuer, client },
    ] {
        let (first, second) = two();
        let unknown = first.open();
        let mallorys = first.fixture.open(MALLORY);
        assert!(
            second
                .fixture
                .store
                .end_scope(scope, EndReason::Administrator)
                .ticket
                .is_done()
        );
        assert_eq!(
            second.try_use(&unknown),
            Err(ResolveError::Ended),
            "{scope:?}"
        );
        assert!(second.fixture.resolve(MALLORY, &mallorys).is_ok());
        let others = EndScope::Subject {
            issuer: "https://other.example",
            subject,
        };
        let later = second.open();
        drop(
            second
                .fixture
                .store
                .end_scope(others, EndReason::Administrator),
        );
        assert_eq!(second.try_use(&later), Ok(()));
    }
}

/// E9, E12: the end of a scope returns the sessions that it ended, so that each is ended at its
/// upstream once.
#[test]
fn the_end_of_a_scope_returns_its_sessions() {
    let Owner::Subject {
        issuer, subject, ..
    } = ALICE
    else {
        unreachable!()
    };
    let fixture = fixture();
    let sessions: Vec<_> = (0..3).map(|_| fixture.open(ALICE)).collect();
    let mallorys = fixture.open(MALLORY);
    fixture.store.end(&sessions[0], EndReason::Deleted);
    let end = || {
        let ended = fixture
            .store
            .end_scope(
                EndScope::Subject { issuer, subject },
                EndReason::Administrator,
            )
            .sessions;
        let mut hashes: Vec<_> = ended.iter().map(|session| session.log_hash()).collect();
        hashes.sort_unstable();
        hashes
    };
    let mut expected: Vec<_> = sessions[1..]
        .iter()
        .map(|session| session.log_hash())
        .collect();
    expected.sort_unstable();
    assert_eq!(end(), expected);
    assert!(end().is_empty(), "they have ended before");
    assert!(!mallorys.has_ended());
}
