//! Ending of sessions: one, or all of a subject or a client, including those that are in no table.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_endpoint::{StreamEndReason, StreamRegistry, StreamRequest};
use portcullis_session::{EndReason, EndScope, EndTicket, LogHash, NotRecorded, Owner, Session};
use tokio::time::timeout;

use super::{
    request::{EndTarget, OwnerFilter},
    response::AdminError,
};
use crate::{administration::EndResult, serve::state::ServerState};

/// How long a response waits until the action is recorded.
pub(super) const RECORD_TIMEOUT: Duration = Duration::from_secs(5);

/// Sessions that have ended in this process, and whose end is being recorded.
pub(super) struct Ending {
    pub(super) result: EndResult,
    tickets: Vec<EndTicket>,
}

/// Ends sessions and their streams in this process, and begins to record the end.
///
/// # Errors
/// Fails if no session of the table has the hash, or the issuer is not configured.
pub(super) fn begin(state: &ServerState, target: EndTarget) -> Result<Ending, AdminError> {
    match target {
        EndTarget::Session(hash) => end_session(state, hash),
        EndTarget::Owners(owners) => end_owners(state, &owners),
    }
}

impl Ending {
    /// Waits until the end is recorded.
    ///
    /// # Errors
    /// Fails if it is not recorded in time. It holds in this process.
    pub(super) async fn confirmed(self) -> Result<EndResult, AdminError> {
        let recorded = async {
            for ticket in self.tickets {
                ticket.await?;
            }
            Ok::<_, NotRecorded>(())
        };
        match timeout(RECORD_TIMEOUT, recorded).await {
            Ok(Ok(())) => Ok(self.result),
            _ => {
                let message = "the sessions have ended in this process, and the end could not be recorded: they can continue after a \
                               restart or elsewhere; try again";
                Err(AdminError::new(StatusCode::SERVICE_UNAVAILABLE, NotRecorded.code(), message))
            }
        }
    }
}

fn end_session(state: &ServerState, hash: LogHash) -> Result<Ending, AdminError> {
    let sessions = &state.process().sessions;
    let unknown = || {
        let message =
            "no session in the table of this process has this hash; end the sessions of its subject or client instead";
        AdminError::new(StatusCode::NOT_FOUND, "admin.session_unknown", message)
    };
    let session = sessions.find(hash).ok_or_else(unknown)?;
    let streams_ended = StreamRegistry::of_session(&session);
    let ticket = sessions.end(&session, EndReason::Administrator).ok_or_else(unknown)?;
    state.process().streams.sweep();
    state.process().upstream_ends.add_all(&[session]);
    Ok(Ending { result: EndResult { sessions_ended: 1, streams_ended }, tickets: vec![ticket] })
}

/// Ends the sessions of a subject or a client by a floor: sessions in no table end, too, and those opened later do not.
fn end_owners(state: &ServerState, owners: &OwnerFilter) -> Result<Ending, AdminError> {
    let process = state.process();
    let mut found = process.sessions.all();
    found.retain(|session| owners.matches(session.owner()));
    let tickets = issuers(state, owners, &found)?
        .iter()
        .filter_map(|issuer| scope(issuer, owners))
        .map(|scope| process.sessions.end_scope(scope, EndReason::Administrator))
        .collect();
    let is_ended = |request: &StreamRequest<'_>| {
        request.principal.is_some_and(|principal| {
            owners.matches_names(Some(principal.issuer().as_str()), principal.subject(), principal.client())
        })
    };
    let streams_ended = process.streams.end(StreamEndReason::Administrator, is_ended);
    found.retain(|session| session.has_ended());
    process.upstream_ends.add_all(&found);
    Ok(Ending { result: EndResult { sessions_ended: found.len(), streams_ended }, tickets })
}

/// Returns the issuers whose sessions end: the named one; otherwise all that are configured, and those of the found sessions.
fn issuers(state: &ServerState, owners: &OwnerFilter, found: &[Arc<Session>]) -> Result<BTreeSet<String>, AdminError> {
    let mut issuers: BTreeSet<String> = state.issuers().map(|issuer| issuer.issuer().as_str().to_owned()).collect();
    issuers.extend(found.iter().filter_map(|session| session.owner().issuer()).map(str::to_owned));
    if let Some(issuer) = &owners.issuer {
        issuers.retain(|known| known == issuer);
        if issuers.is_empty() {
            return Err(unknown_issuer());
        }
    }
    Ok(issuers)
}

/// Returns the error for an issuer that is not configured.
pub(super) fn unknown_issuer() -> AdminError {
    let message = "the issuer is not configured; write it exactly as in the configuration";
    AdminError::new(StatusCode::NOT_FOUND, "admin.issuer_unknown", message)
}

fn scope<'a>(issuer: &'a str, owners: &'a OwnerFilter) -> Option<EndScope<'a>> {
    match (owners.subject.as_deref(), owners.client.as_deref()) {
        (Some(subject), None) => Some(EndScope::Subject { issuer, subject }),
        (None, Some(client)) => Some(EndScope::Client { issuer, client }),
        (Some(subject), client) => Some(EndScope::Owner(Owner::Subject { issuer, subject, client })),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E12: a subject ends with all its clients, a client with all its subjects, and both together only the one owner.
    #[test]
    fn names_select_the_scope() {
        let owners = |subject: Option<&str>, client: Option<&str>| OwnerFilter {
            issuer: None,
            subject: subject.map(str::to_owned),
            client: client.map(str::to_owned),
        };
        let id = |owners: &OwnerFilter| scope("https://i", owners).map(|scope| scope.id());
        let issuer = "https://i";
        let subject = "alice";
        let client = "app";
        assert_eq!(id(&owners(Some(subject), None)), Some(EndScope::Subject { issuer, subject }.id()));
        assert_eq!(id(&owners(None, Some(client))), Some(EndScope::Client { issuer, client }.id()));

        let owner = Owner::Subject { issuer, subject, client: Some(client) };
        assert_eq!(id(&owners(Some(subject), Some(client))), Some(EndScope::Owner(owner).id()));
        assert_eq!(id(&owners(None, None)), None);
    }

    /// E12: an end that is not recorded is not confirmed.
    #[tokio::test(start_paused = true)]
    async fn an_end_is_confirmed_when_it_is_recorded() {
        let ending = |tickets| Ending { result: EndResult { sessions_ended: 1, streams_ended: 0 }, tickets };
        assert_eq!(ending(vec![EndTicket::done()]).confirmed().await.unwrap().sessions_ended, 1);
        let (_confirmation, pending) = EndTicket::pending();
        for tickets in [vec![EndTicket::done(), EndTicket::failed()], vec![pending]] {
            let error = ending(tickets).confirmed().await.unwrap_err();
            assert_eq!(error.status, StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(error.code, "session.end_not_recorded");
        }
    }
}
