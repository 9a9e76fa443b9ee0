//! The records that a file or Redis still needs, without I/O.

use std::collections::HashMap;

use portcullis_metadata::UnixTime;
use portcullis_session::{EndExtent, LastUse, ScopeId, SessionEnd};

/// A session that has ended, or whose older identifiers have.
#[derive(PartialEq, Eq, Hash)]
struct EndedSession {
    owner: ScopeId,
    session: [u8; 16],
}

/// The end of a session.
struct Ended {
    created: UnixTime,
    extent: EndExtent,
}

/// Returns the ends that still matter: those of sessions that were created at `oldest` or later,
/// without those that another end includes.
pub(crate) fn needed_ends(
    ends: impl IntoIterator<Item = SessionEnd>,
    oldest: UnixTime,
) -> Vec<SessionEnd> {
    let mut floors: HashMap<Option<ScopeId>, UnixTime> = HashMap::new();
    let mut sessions: HashMap<EndedSession, Ended> = HashMap::new();
    for end in ends {
        if end.created() < oldest {
            continue;
        }
        match end {
            SessionEnd::Floor { scope, created } => {
                let floor = floors.entry(scope).or_insert(created);
                *floor = created.max(*floor);
            }
            SessionEnd::Session {
                owner,
                session,
                created,
                extent,
            } => {
                let known = sessions
                    .entry(EndedSession { owner, session })
                    .or_insert(Ended { created, extent });
                known.extent = known.extent.max(extent);
            }
        }
    }
    let global = floors.get(&None).copied();
    sessions.retain(|session, ended| {
        let floor = floors.get(&Some(session.owner)).copied().max(global);
        floor.is_none_or(|floor| ended.created > floor)
    });
    let floors = floors
        .into_iter()
        .map(|(scope, created)| SessionEnd::Floor { scope, created });
    let sessions = sessions.into_iter().map(
        |(EndedSession { owner, session }, Ended { created, extent })| SessionEnd::Session {
            owner,
            session,
            created,
            extent,
        },
    );
    floors.chain(sessions).collect()
}

/// Returns the latest use of each session, if it is not before `oldest`.
pub(crate) fn needed_uses(
    uses: impl IntoIterator<Item = LastUse>,
    oldest: UnixTime,
) -> Vec<LastUse> {
    let mut latest: HashMap<[u8; 16], UnixTime> = HashMap::new();
    for LastUse { session, time } in uses {
        if time >= oldest {
            let known = latest.entry(session).or_insert(time);
            *known = time.max(*known);
        }
    }
    latest
        .into_iter()
        .map(|(session, time)| LastUse { session, time })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(owner: u8, session: u8, created: u64, extent: EndExtent) -> SessionEnd {
        let created = UnixTime::from_secs(created);
        SessionEnd::Session {
            owner: ScopeId([owner; 16]),
            session: [session; 16],
            created,
            extent,
        }
    }

    fn floor(scope: Option<u8>, created: u64) -> SessionEnd {
        let scope = scope.map(|scope| ScopeId([scope; 16]));
        SessionEnd::Floor {
            scope,
            created: UnixTime::from_secs(created),
        }
    }

    fn needed(ends: &[SessionEnd], oldest: u64) -> Vec<SessionEnd> {
        let mut needed = needed_ends(ends.iter().copied(), UnixTime::from_secs(oldest));
        needed.sort_by_key(SessionEnd::encode);
        needed
    }

    /// E12: expired and repeated ends go, and those below a floor. An end of all generations wins
    /// over one of some, and the end by the owner over that by the server.
    #[test]
    fn ends_that_others_include_go() {
        let ended = [
            session(1, 1, 5, EndExtent::GenerationsBelow(2)),
            session(1, 1, 5, EndExtent::GenerationsBelow(7)),
            session(1, 1, 5, EndExtent::GenerationsBelow(3)),
        ];
        assert_eq!(
            needed(&ended, 0),
            [session(1, 1, 5, EndExtent::GenerationsBelow(7))]
        );
        let whole = [
            session(1, 1, 5, EndExtent::GenerationsBelow(7)),
            session(1, 1, 5, EndExtent::ByServer),
            session(1, 1, 5, EndExtent::GenerationsBelow(9)),
        ];
        assert_eq!(needed(&whole, 0), [session(1, 1, 5, EndExtent::ByServer)]);
        assert_eq!(needed(&whole, 5), [session(1, 1, 5, EndExtent::ByServer)]);
        assert_eq!(needed(&whole, 6), []);
        let by_owner = session(1, 1, 5, EndExtent::ByOwner);
        let by_server = session(1, 1, 5, EndExtent::ByServer);
        for ends in [[by_owner, by_server], [by_server, by_owner]] {
            assert_eq!(needed(&ends, 0), [by_owner]);
        }
        let floors = [
            session(1, 1, 5, EndExtent::ByServer),
            session(1, 2, 9, EndExtent::ByServer),
            session(2, 3, 5, EndExtent::ByServer),
            floor(Some(1), 5),
        ];
        assert_eq!(
            needed(&floors, 0),
            [
                session(1, 2, 9, EndExtent::ByServer),
                session(2, 3, 5, EndExtent::ByServer),
                floor(Some(1), 5)
            ]
        );
        let global = [
            session(1, 1, 5, EndExtent::ByServer),
            session(2, 2, 9, EndExtent::ByServer),
            floor(None, 5),
            floor(None, 3),
        ];
        assert_eq!(
            needed(&global, 0),
            [session(2, 2, 9, EndExtent::ByServer), floor(None, 5)]
        );
    }

    /// E12: the latest use of each session is needed, until the idle timeout.
    #[test]
    fn the_latest_use_is_needed() {
        let used = |session: u8, secs| LastUse {
            session: [session; 16],
            time: UnixTime::from_secs(secs),
        };
        let mut needed = needed_uses(
            [used(1, 5), used(1, 9), used(1, 7), used(2, 3)],
            UnixTime::from_secs(4),
        );
        assert_eq!(needed.pop(), Some(used(1, 9)));
        assert_eq!(needed.pop(), None);
    }
}
