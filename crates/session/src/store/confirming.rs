//! The confirmation of ends: a journal must have recorded an end before the owner learns of it.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use portcullis_metadata::UnixTime;

use super::{Inner, SessionStore, adoption::Opened};
use crate::{
    end_reason::EndReason,
    ends::IncludingEnd,
    fault_injection::{Fault, is_injected},
    identifier::{self, SessionId},
    journal::{EndExtent, EndTicket, NotRecorded, SessionEnd},
    live_session::{Session, millis},
    owner::Owner,
    scope::{ScopeId, SessionTarget},
};

/// Completes when the end of a session is recorded. Created by [`SessionStore::end_and_record`] and
/// [`SessionStore::record_known_end`].
///
/// The store then knows that the end is recorded, and does not record it for another caller. If it
/// is dropped before, the end is recorded nevertheless, and once more for the next caller.
#[must_use = "the end is not confirmed"]
pub struct EndRecord {
    store: Arc<Inner>,
    /// What is being recorded; `None` if nothing has to be.
    end: Option<SessionEnd>,
    ticket: EndTicket,
}

/// A session, as its identifier describes it.
struct Named<'a> {
    target: &'a SessionTarget,
    owner: Owner<'a>,
    session: &'a SessionId,
    created: UnixTime,
    generation: u32,
}

impl SessionStore {
    /// Ends a session, even if it is in use, and returns the record of the end. If the session has
    /// already ended, for any reason, that end is recorded again unless it is known to be recorded.
    pub fn end_and_record(&self, session: &Session, reason: EndReason) -> EndRecord {
        let created = session.created();
        match self.end(session, reason) {
            Some(ticket) => {
                let end = SessionEnd::Session {
                    owner: session.owner_id(),
                    session: *session.id(),
                    created,
                    extent: reason.into(),
                };
                EndRecord {
                    store: Arc::clone(&self.0),
                    end: Some(end),
                    ticket,
                }
            }
            // Only this process could have continued the session.
            None if !session.is_sealed() => self.recorded(),
            None => self.record_again(&Named {
                target: session.target(),
                owner: session.owner(),
                session: session.id(),
                created,
                generation: EndExtent::HIGHEST_GENERATION,
            }),
        }
    }

    /// Records the end of a session whose identifier [`resolve`](Self::resolve) has rejected with
    /// [`ResolveError::Ended`](crate::ResolveError::Ended), unless the end is known to be recorded.
    /// Another process may not know it: the journal has failed, or the session has ended only by
    /// the view of this process. In the second case, the session ends.
    ///
    /// An identifier that was not issued to this owner for this resource has nothing to record.
    pub fn record_known_end(
        &self,
        target: &SessionTarget,
        owner: Owner<'_>,
        identifier: &[u8],
    ) -> EndRecord {
        let keys = self.0.keys.load();
        let opened = identifier::head(identifier)
            .and_then(|head| Opened::new(&keys, head, target, owner, identifier));
        match opened {
            Some(Opened { record, .. }) if record.backend_id.is_some() => {
                self.record_again(&Named {
                    target,
                    owner,
                    session: &record.session,
                    created: record.created,
                    generation: record.generation,
                })
            }
            _ => self.recorded(),
        }
    }

    fn record_again(&self, named: &Named<'_>) -> EndRecord {
        let Named {
            target,
            owner,
            session,
            created,
            generation,
        } = *named;
        let age = self.0.clock.now().saturating_duration_since(created);
        // The clock of another process can be behind: it accepts the session for longer.
        let is_over =
            millis(age.saturating_sub(Self::MAX_CLOCK_DIFFERENCE)) >= self.0.timeouts.lifetime;
        if is_over || is_injected(Fault::AssumedRecord) {
            return self.recorded();
        }
        let (end, ticket) = match self
            .0
            .ends
            .including(owner, target, session, created, generation)
        {
            Some(IncludingEnd {
                is_recorded: true, ..
            }) => return self.recorded(),
            Some(IncludingEnd { end, .. }) => (end, self.0.journal.record(&end)),
            None => {
                let owner_id = ScopeId::of_owner(owner);
                let known = self.0.table.get(session).map(|known| Arc::clone(&known));
                let known = known.filter(|known| known.owner_id() == owner_id);
                let ended = known.and_then(|known| self.end(&known, EndReason::DeleteFailed));
                // Without a ticket, another call may have ended the session and not recorded it
                // yet.
                let ticket = ended.unwrap_or_else(|| {
                    self.0.record_session_end(
                        owner,
                        owner_id,
                        *session,
                        created,
                        EndExtent::ByOwner,
                    )
                });
                (
                    SessionEnd::Session {
                        owner: owner_id,
                        session: *session,
                        created,
                        extent: EndExtent::ByOwner,
                    },
                    ticket,
                )
            }
        };
        EndRecord {
            store: Arc::clone(&self.0),
            end: Some(end),
            ticket,
        }
    }

    fn recorded(&self) -> EndRecord {
        EndRecord {
            store: Arc::clone(&self.0),
            end: None,
            ticket: EndTicket::done(),
        }
    }
}

impl Future for EndRecord {
    type Output = Result<(), NotRecorded>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.ticket).poll(cx));
        if result.is_ok()
            && let Some(end) = self.end.take()
        {
            self.store.ends.set_recorded(&end);
        }
        Poll::Ready(result)
    }
}

impl fmt::Debug for EndRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndRecord")
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}
