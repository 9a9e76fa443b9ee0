//! Ending of sessions: one, or all of a subject or a client, including those that are in no table.

use std::collections::BTreeSet;

use http::StatusCode;
use portcullis_endpoint::{StreamEndReason, StreamRegistry, StreamRequest};
use portcullis_session::{EndReason, EndScope, EndTicket, EndedScope, LogHash, NotRecorded, Owner};

use super::{
    confirmation::{self, Unconfirmed},
    request::{EndOwners, EndTarget, OwnerFilter, OwnerNames},
    response::AdminError,
};
use crate::{administration::EndResult, state::ServerState};

/// Sessions that have ended in this process, and whose end is being recorded.
#[derive(Debug)]
#[must_use = "the end is not confirmed"]
pub(super) struct Ending {
    pub(super) result: EndResult,
    tickets: Vec<EndTicket>,
    target: TargetType,
}

/// What a request named.
#[derive(Clone, Copy, Debug)]
enum TargetType {
    Session,
    Owners,
}

/// Ends sessions and their streams in this process, and begins to record the end. Fails if no
/// session of the table has the hash. Fails if the issuer is neither configured nor that of a
/// session in the table: after a reload that removes an issuer, earlier requests can still open
/// sessions of it.
pub(super) fn begin(state: &ServerState, target: EndTarget) -> Result<Ending, AdminError> {
    match target {
        EndTarget::Session(hash) => end_session(state, hash),
        EndTarget::Owners(owners) => end_owners(state, &owners),
    }
}

impl Ending {
    /// Waits until the end is recorded. Fails if it is not recorded in time. It holds in this
    /// process.
    pub(super) async fn confirmed(self) -> Result<EndResult, AdminError> {
        match confirmation::wait(self.tickets).await {
            Ok(()) => Ok(self.result),
            Err(unconfirmed) => Err(not_recorded(self.target, unconfirmed)),
        }
    }
}

/// Returns the error for an end that is not recorded, with a fix that can work: an ended session is
/// not in the table any more, so that its hash is unknown to a second request. The owners are still
/// known.
fn not_recorded(target: TargetType, unconfirmed: Unconfirmed) -> AdminError {
    let (ended, pronoun, fix) = match target {
        TargetType::Session => (
            "session has",
            "it",
            "end the sessions of its subject or client instead",
        ),
        TargetType::Owners => ("sessions have", "they", "try again"),
    };
    let cause = match unconfirmed {
        Unconfirmed::Failed => "the end could not be recorded",
        Unconfirmed::TimedOut => "the end was not recorded within 5 s",
    };
    let message = format!(
        "the {ended} ended in this process, and {cause}: {pronoun} can continue after a restart or elsewhere; {fix}"
    );
    AdminError::new(StatusCode::SERVICE_UNAVAILABLE, NotRecorded.code(), message)
}

fn end_session(state: &ServerState, hash: LogHash) -> Result<Ending, AdminError> {
    let process = state.process();
    let unknown = || {
        let message = "no session in the table of this process has this hash; end the sessions of its subject or client instead";
        AdminError::new(StatusCode::NOT_FOUND, "admin.session_unknown", message)
    };
    let session = process.sessions.find(hash).ok_or_else(unknown)?;
    let streams_ended = StreamRegistry::of_session(&session);
    let ticket = process
        .sessions
        .end(&session, EndReason::Administrator)
        .ok_or_else(unknown)?;
    // The sweep ends the streams whose session has ended. Streams of requests without a session
    // stay.
    process.streams.sweep();
    process.upstream_ends.add_all(&[session]);
    let result = EndResult {
        sessions_ended: 1,
        streams_ended,
    };
    Ok(Ending {
        result,
        tickets: vec![ticket],
        target: TargetType::Session,
    })
}

/// Ends the sessions of a subject or a client by a floor: sessions in no table end, too, and those
/// opened later do not.
fn end_owners(state: &ServerState, owners: &EndOwners) -> Result<Ending, AdminError> {
    let process = state.process();
    let filter = owners.filter();
    let mut tickets = Vec::new();
    let mut sessions = Vec::new();
    for issuer in issuers(state, &filter)? {
        // The sessions that the floor ended are told to their upstreams: a list from before would
        // lack those opened meanwhile.
        let ended = process
            .sessions
            .end_scope(scope(&issuer, &owners.names), EndReason::Administrator);
        let EndedScope {
            ticket,
            sessions: of_issuer,
            ..
        } = ended;
        tickets.push(ticket);
        sessions.extend(of_issuer);
    }
    // Streams are selected by their token and not by their session, because requests without a
    // session can have streams.
    let is_ended = |request: &StreamRequest<'_>| {
        request.principal.is_some_and(|principal| {
            filter.matches_names(
                Some(principal.issuer().as_str()),
                principal.subject(),
                principal.client(),
            )
        })
    };
    let streams_ended = process
        .streams
        .end(StreamEndReason::Administrator, is_ended);
    process.upstream_ends.add_all(&sessions);
    let result = EndResult {
        sessions_ended: sessions.len(),
        streams_ended,
    };
    Ok(Ending {
        result,
        tickets,
        target: TargetType::Owners,
    })
}

/// Returns the issuers whose sessions end: all that are configured, and those of the owners'
/// sessions in the table. If the filter names an issuer, only this one.
fn issuers(state: &ServerState, filter: &OwnerFilter) -> Result<BTreeSet<String>, AdminError> {
    let mut issuers: BTreeSet<String> = state
        .issuers()
        .map(|issuer| issuer.issuer().as_str().to_owned())
        .collect();
    for session in state.process().sessions.all() {
        let owner = session.owner();
        if filter.matches(owner) {
            issuers.extend(owner.issuer().map(str::to_owned));
        }
    }
    if let Some(issuer) = &filter.issuer {
        issuers.retain(|known| known == issuer);
        if issuers.is_empty() {
            let message = "the issuer is not configured, and the table has no session of it; write it exactly as in the configuration";
            return Err(AdminError::unknown_issuer(message));
        }
    }
    Ok(issuers)
}

fn scope<'a>(issuer: &'a str, names: &'a OwnerNames) -> EndScope<'a> {
    match names {
        OwnerNames::Subject(subject) => EndScope::Subject { issuer, subject },
        OwnerNames::Client(client) => EndScope::Client { issuer, client },
        OwnerNames::Both { subject, client } => EndScope::Owner(Owner::Subject {
            issuer,
            subject,
            client: Some(client),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portcullis_metadata::{ResourceUri, Scopes, SystemClock};
    use portcullis_session::{Session, SessionTarget};
    use portcullis_telemetry::{AccessLog, LogFormat};

    use super::*;
    use portcullis_config::{from_text, plan::Plan};

    use crate::{
        observers::Observers,
        persistence::session_persistence::SessionPersistence,
        state::{Process, ServerState},
    };

    const CONFIGURED: &str = "https://a.example";
    const REMOVED: &str = "https://removed.example";

    /// The state of a server with one issuer.
    fn state() -> ServerState {
        let config = r#"
            base_url = "http://127.0.0.1:3000"
            [[issuer]]
            issuer = "https://a.example"
            [[resource]]
            endpoint = "/mcp"
            upstream = "demo"
        "#;
        let plan = Plan::new(&from_text(config).unwrap()).unwrap();
        let access = Arc::new(AccessLog::without_writer(LogFormat::default()));
        let (process, _) = Process::new(
            &plan,
            crate::Product::default(),
            Arc::new(SystemClock::new()),
            Observers {
                access,
                audit: None,
                metrics: None,
                traces: None,
            },
            &mut SessionPersistence::in_memory(&plan),
        );
        ServerState::new(&plan, &process, None).unwrap()
    }

    fn open(state: &ServerState, owner: Owner<'_>) -> Arc<Session> {
        let target: SessionTarget = ResourceUri::parse("http://127.0.0.1:3000/mcp")
            .unwrap()
            .into();
        let reservation = state
            .process()
            .sessions
            .reserve(&target, owner, &Scopes::empty())
            .unwrap();
        Arc::clone(
            reservation
                .open(Box::from(*b"backend"), None)
                .unwrap()
                .session(),
        )
    }

    fn alice(issuer: &str) -> Owner<'_> {
        Owner::Subject {
            issuer,
            subject: "alice",
            client: Some("app"),
        }
    }

    fn owners(issuer: Option<&str>, names: OwnerNames) -> EndTarget {
        EndTarget::Owners(EndOwners {
            issuer: issuer.map(str::to_owned),
            names,
        })
    }

    /// E12: a session ends by its hash once; an unknown hash is an error with a fix.
    #[tokio::test]
    async fn a_session_ends_by_its_hash() {
        let state = state();
        let session = open(&state, alice(CONFIGURED));
        let other = open(&state, alice(CONFIGURED));
        let target = EndTarget::Session(session.log_hash());
        let ending = begin(&state, target.clone()).unwrap();
        assert_eq!(
            (ending.result.sessions_ended, ending.result.streams_ended),
            (1, 0)
        );
        assert!(session.has_ended());
        assert!(!other.has_ended());

        let error = begin(&state, target).unwrap_err();
        assert_eq!(
            (error.status, error.code),
            (StatusCode::NOT_FOUND, "admin.session_unknown")
        );
    }

    /// E12: the sessions of a subject end, in the number that is returned; those of others do not.
    #[tokio::test]
    async fn the_ended_sessions_are_counted() {
        let state = state();
        let ended = [CONFIGURED, CONFIGURED, REMOVED].map(|issuer| open(&state, alice(issuer)));
        let other = open(
            &state,
            Owner::Subject {
                issuer: CONFIGURED,
                subject: "bob",
                client: Some("app"),
            },
        );
        let target = owners(None, OwnerNames::Subject("alice".to_owned()));
        assert_eq!(
            begin(&state, target.clone()).unwrap().result.sessions_ended,
            3
        );
        assert!(ended.iter().all(|session| session.has_ended()));
        assert!(!other.has_ended());
        assert_eq!(begin(&state, target).unwrap().result.sessions_ended, 0);
    }

    /// E12: an issuer must be configured, or be that of a session in the table.
    #[tokio::test]
    async fn issuers_are_known() {
        let state = state();
        let names = || OwnerNames::Client("app".to_owned());
        let error = begin(&state, owners(Some(REMOVED), names())).unwrap_err();
        assert_eq!(
            (error.status, error.code),
            (StatusCode::NOT_FOUND, "admin.issuer_unknown")
        );
        assert_eq!(
            begin(&state, owners(Some(CONFIGURED), names()))
                .unwrap()
                .result
                .sessions_ended,
            0
        );

        let kept = open(&state, alice(CONFIGURED));
        let session = open(&state, alice(REMOVED));
        assert_eq!(
            begin(&state, owners(Some(REMOVED), names()))
                .unwrap()
                .result
                .sessions_ended,
            1
        );
        assert!(session.has_ended());
        assert!(!kept.has_ended());
    }

    /// E12: a subject ends with all its clients, a client with all its subjects, and both together
    /// only the one owner.
    #[test]
    fn names_select_the_scope() {
        let issuer = "https://i";
        let subject = "alice";
        let client = "app";
        let owner = Owner::Subject {
            issuer,
            subject,
            client: Some(client),
        };
        for (names, expected) in [
            (
                OwnerNames::Subject(subject.into()),
                EndScope::Subject { issuer, subject },
            ),
            (
                OwnerNames::Client(client.into()),
                EndScope::Client { issuer, client },
            ),
            (
                OwnerNames::Both {
                    subject: subject.into(),
                    client: client.into(),
                },
                EndScope::Owner(owner),
            ),
        ] {
            assert_eq!(scope(issuer, &names).id(), expected.id(), "{names:?}");
        }
    }

    /// E12: an end that is not recorded is not confirmed, and the error names a fix that can work.
    #[tokio::test(start_paused = true)]
    async fn an_end_is_confirmed_when_it_is_recorded() {
        let ending = |target, ticket| Ending {
            result: EndResult {
                sessions_ended: 1,
                streams_ended: 0,
            },
            tickets: vec![EndTicket::done(), ticket],
            target,
        };
        let confirmed = ending(TargetType::Session, EndTicket::done())
            .confirmed()
            .await;
        assert_eq!(confirmed.unwrap().sessions_ended, 1);

        let (_confirmation, pending) = EndTicket::pending();
        for (target, ticket, expected) in [
            (
                TargetType::Session,
                EndTicket::failed(),
                "the session has ended in this process, and the end could not be recorded: it can continue after a restart or \
                 elsewhere; end the sessions of its subject or client instead",
            ),
            (
                TargetType::Owners,
                pending,
                "the sessions have ended in this process, and the end was not recorded within 5 s: they can continue after a \
                 restart or elsewhere; try again",
            ),
        ] {
            let error = ending(target, ticket).confirmed().await.unwrap_err();
            assert_eq!(error.status, StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(error.code, "session.end_not_recorded");
            assert_eq!(error.message, expected);
        }
    }
}
