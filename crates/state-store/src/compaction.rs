//! The records that a file or Redis still needs, without I/O.

use std::collections::HashMap;

use portcullis_metadata::UnixTime;
use portcullis_session::{LastUse, ScopeId, SessionEnd};

/// A session that has ended, or whose older identifiers have.
#[derive(PartialEq, Eq, Hash)]
struct EndedSession {
    owner: ScopeId,
    session: [u8; 16],
}

/// The end of a session.
struct Ended {
    created: UnixTime,
    lowest_generation: Option<u32>,
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
                lowest_generation,
            } => {
                let ended = Ended {
                    created,
                    lowest_generation,
                };
                let known = sessions
                    .entry(EndedSession { owner, session })
                    .or_insert(ended);
                // Without a generation, the whole session has ended.
                known.lowest_generation = known
                    .lowest_generation
                    .zip(lowest_generation)
                    .map(|(one, other)| one.max(other));
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
        |(
            EndedSession { owner, session },
            Ended {
                created,
                lowest_generation,
            },
        )| {
            SessionEnd::Session {
                owner,
                session,
                created,
                lowest_generation,
            }
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

    fn session(owner: u8, session: u8, created: u64, lowest_generation: Option<u32>) -> SessionEnd {
        let created = UnixTime::from_secs(created);
        SessionEnd::Session {
            owner: ScopeId([owner; 16]),
            session: [session; 16],
            created,
            lowest_generation,
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
    /// over one of some.
    #[test]
    fn ends_that_others_include_go() {
        let ended = [
            session(1, 1, 5, Some(2)),
            session(1, 1, 5, Some(7)),
            session(1, 1, 5, Some(3)),
        ];
        assert_eq!(needed(&ended, 0), [session(1, 1, 5, Some(7))]);
        let whole = [
            session(1, 1, 5, Some(7)),
            session(1, 1, 5, None),
            session(1, 1, 5, Some(9)),
        ];
        assert_eq!(needed(&whole, 0), [session(1, 1, 5, None)]);
        assert_eq!(needed(&whole, 5), [session(1, 1, 5, None)]);
        assert_eq!(needed(&whole, 6), []);
        let floors = [
            session(1, 1, 5, None),
            session(1, 2, 9, None),
            session(2, 3, 5, None),
            floor(Some(1), 5),
        ];
        assert_eq!(
            needed(&floors, 0),
            [
                session(1, 2, 9, None),
                session(2, 3, 5, None),
                floor(Some(1), 5)
            ]
        );
        let global = [
            session(1, 1, 5, None),
            session(2, 2, 9, None),
            floor(None, 5),
            floor(None, 3),
        ];
        assert_eq!(needed(&global, 0), [session(2, 2, 9, None), floor(None, 5)]);
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
