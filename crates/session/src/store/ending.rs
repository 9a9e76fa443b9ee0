//! How sessions end, in this process and in others.

use std::{
    ptr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use portcullis_metadata::UnixTime;

use super::{Inner, SessionStore, last_use_heap::Evicted};
use crate::{
    end_reason::EndReason,
    ends::RaisedFloors,
    error::ReservationError,
    fault_injection::{Fault, is_injected},
    identifier::SessionId,
    journal::{EndExtent, EndTicket, SessionEnd},
    live_session::{Session, Status},
    owner::Owner,
    scope::{EndScope, ScopeId},
};

/// The result of [`SessionStore::end_scope`].
#[derive(Debug)]
#[must_use = "the ticket tells whether the end is recorded"]
#[non_exhaustive]
pub struct EndedScope {
    /// Completes when the end is recorded.
    pub ticket: EndTicket,
    /// The sessions of this process's table that this call ended, each with the given reason. It
    /// contains neither those that were ending already nor those of other processes.
    pub sessions: Vec<Arc<Session>>,
}

impl SessionStore {
    /// Ends a session, even if it is in use. Returns a ticket that completes when the end is
    /// recorded. Returns `None`, and does nothing, if the session has already ended or belongs to
    /// another store.
    pub fn end(&self, session: &Session, reason: EndReason) -> Option<EndTicket> {
        let is_stored = self
            .0
            .table
            .get(session.id())
            .is_some_and(|stored| ptr::eq(&**stored, session));
        (is_stored && session.end()).then(|| self.0.remove(session, reason))
    }

    /// Ends all sessions of a scope, including those of other processes, but not those that are
    /// opened later.
    pub fn end_scope(&self, scope: EndScope<'_>, reason: EndReason) -> EndedScope {
        let now = self.0.clock.now();
        // The clock of a process that has opened a session can be ahead.
        let created = self
            .0
            .ends
            .floor_above_all(now.saturating_add(Self::MAX_CLOCK_DIFFERENCE));
        let id = scope.id();
        let raised = self.0.ends.raise(Some(id), created, now);
        let ticket = self.0.journal.record(&SessionEnd::Floor {
            scope: Some(id),
            created,
        });
        let sessions = self.0.end_created_until(Some(id), created, reason);
        self.0.record_overflow(id, raised);
        EndedScope { ticket, sessions }
    }

    /// Adds an end that another process has recorded, or this one before a restart. It is not
    /// recorded again.
    ///
    /// The end of a session that was created later than [`MAX_AHEAD`](Self::MAX_AHEAD) from now is
    /// ignored, and a later floor is lowered to that time.
    pub fn import(&self, end: &SessionEnd) {
        let now = self.0.clock.now();
        let Some(end) = end.limited_to(now.saturating_add(Self::MAX_AHEAD)) else {
            return;
        };
        match end {
            SessionEnd::Session {
                owner,
                session,
                created,
                extent,
            } => {
                let raised = self.0.ends.add(owner, session, created, extent, now);
                let known = self.0.table.get(&session).map(|known| Arc::clone(&known));
                let known = known.filter(|known| known.owner_id() == owner);
                match extent {
                    EndExtent::GenerationsBelow(lowest) => {
                        known.map(|known| self.0.end_generations_here(&known, lowest));
                    }
                    EndExtent::ByServer | EndExtent::ByOwner => {
                        self.0.peer_sessions.remove(owner, &session);
                        known.map(|known| self.0.end_here(&known, EndReason::EndedElsewhere));
                    }
                }
                self.0.end_overflow(owner, raised);
            }
            // The call that raised the floor searches the table. A session that is recorded
            // meanwhile finds the floor.
            SessionEnd::Floor { scope, created } if self.0.ends.has_floor(scope, created) => {}
            SessionEnd::Floor { scope, created } => {
                let raised = self.0.ends.raise(scope, created, now);
                drop(
                    self.0
                        .end_created_until(scope, created, EndReason::ScopeEndedElsewhere),
                );
                if let Some(scope) = scope {
                    self.0.end_overflow(scope, raised);
                }
            }
        }
    }

    /// Returns all ends that have not expired. A journal can delete all others.
    pub fn ends(&self) -> Vec<SessionEnd> {
        self.0.ends.all()
    }

    /// Records all ends and last uses again, for a journal that may have lost them. Returns a
    /// ticket for each end.
    pub fn record_all(&self) -> Vec<EndTicket> {
        let tickets = self
            .ends()
            .iter()
            .map(|end| self.0.journal.record(end))
            .collect();
        self.0.last_uses_recorded.store(0, Ordering::Release);
        self.record_last_uses();
        tickets
    }
}

impl Inner {
    /// Ends a session that has expired. If the session is idle only in this process, and another
    /// one has used it, releases it instead. Returns whether the session has left the table.
    pub(super) fn expire(&self, session: &Arc<Session>, now: Duration) -> bool {
        if self.has_peers
            && session.expired(now, self.timeouts) == Some(EndReason::Idle)
            && self.is_used_elsewhere(session)
        {
            return self.release(session, now);
        }
        // The session may have been used or ended in the meantime.
        let Status::JustEnded(reason) = session.expire(now, self.timeouts) else {
            return false;
        };
        self.remove(session, reason);
        true
    }

    /// Returns whether another process has used a session within the idle timeout.
    fn is_used_elsewhere(&self, session: &Session) -> bool {
        if is_injected(Fault::OwnViewOfIdleTime) {
            return false;
        }
        let oldest = self
            .clock
            .now()
            .saturating_sub(Duration::from_millis(self.timeouts.idle));
        self.last_uses
            .get(session.id())
            .is_some_and(|last_use| last_use > oldest)
    }

    /// Removes a session from the table that is idle in this process and continues in another one.
    /// Returns whether it was removed.
    fn release(&self, session: &Arc<Session>, now: Duration) -> bool {
        // The lock of the table is held, so that a new use finds the session either active or not
        // at all.
        let is_released = |_: &_, stored: &Arc<Session>| {
            Arc::ptr_eq(stored, session)
                && matches!(session.expire(now, self.timeouts), Status::JustEnded(_))
        };
        if self.table.remove_if(session.id(), is_released).is_none() {
            return false;
        }
        self.remove_identifiers(session);
        self.capacity.remove(session);
        self.observer.released(session);
        true
    }

    /// Adds a new session that is in use to the table. At the owner's limit, with `elsewhere`
    /// sessions in other processes, another session ends.
    pub(super) fn record(
        &self,
        session: &Arc<Session>,
        elsewhere: usize,
        counts_for_subject: bool,
    ) -> Result<(), ReservationError> {
        // No eviction can select the session before it is in the table, because it is in use.
        let evicted = self
            .capacity
            .record(session, elsewhere, counts_for_subject)?;
        self.table.insert(*session.id(), Arc::clone(session));
        self.announce_later(session);
        self.observer.opened(session);
        if !session.is_sealed() && !self.has_unsealed.swap(true, Ordering::AcqRel) {
            self.observer.not_sealed(session);
        }
        self.finish_evictions(evicted);
        // A floor that was recorded in the meantime did not find the session in the table.
        if self.ends.contains(
            session.owner(),
            session.target(),
            session.id(),
            session.created(),
            0,
        ) {
            self.end_here(session, EndReason::ScopeEndedElsewhere);
        }
        Ok(())
    }

    /// Removes the sessions that a new one has evicted from the store.
    pub(super) fn finish_evictions(&self, evicted: Vec<Evicted>) {
        for evicted in evicted {
            if let Evicted::JustEnded { session, last_used } = evicted {
                self.finish_eviction(session, last_used);
            }
        }
    }

    /// Removes an evicted session from the store. If it had expired, its end has that reason.
    fn finish_eviction(&self, session: Arc<Session>, last_used: u64) {
        let reason =
            session.expiry_reason_if_unused(last_used, self.clock.monotonic(), self.timeouts);
        if self.has_peers && reason == Some(EndReason::Idle) && self.is_used_elsewhere(&session) {
            // The session continues in another process.
            self.leave_table(&session);
            self.observer.released(&session);
            return;
        }
        self.remove(&session, reason.unwrap_or(EndReason::Evicted));
    }

    /// Removes a session that has just ended, and records the end. Only the caller that ended the
    /// session calls this, so it happens once. The observer is called last, without a lock. Returns
    /// a ticket that completes when the end is recorded.
    pub(super) fn remove(&self, session: &Session, reason: EndReason) -> EndTicket {
        let extent = EndExtent::from(reason);
        // The end is recorded before the session leaves the table, so that it is not adopted again.
        // A session that is not sealed, or has reached its lifetime, cannot be adopted.
        let ticket = if session.is_sealed() && reason != EndReason::Lifetime {
            self.record_end(session, extent)
        } else {
            if extent == EndExtent::ByOwner {
                self.remember_end(session, extent);
            }
            EndTicket::done()
        };
        self.remove_from_table(session, reason);
        ticket
    }

    /// Ends a session in this process. Its end is recorded already. Returns whether this call ended
    /// it.
    pub(super) fn end_here(&self, session: &Session, reason: EndReason) -> bool {
        let is_ended = session.end();
        if is_ended {
            self.remove_from_table(session, reason);
        }
        is_ended
    }

    /// Removes an ended session from the table, and calls the observer.
    fn remove_from_table(&self, session: &Session, reason: EndReason) {
        self.last_uses.remove(session.id());
        self.peer_sessions.remove(session.owner_id(), session.id());
        self.leave_table(session);
        self.observer.ended(session, reason);
    }

    /// Removes a session from the table and releases its capacity.
    fn leave_table(&self, session: &Session) {
        self.table
            .remove_if(session.id(), |_, stored| ptr::eq(&**stored, session));
        self.remove_identifiers(session);
        self.capacity.remove(session);
    }

    /// Removes the later identifiers of an ended session, which gets no new ones.
    fn remove_identifiers(&self, session: &Session) {
        let first = (session.first().number > 0).then_some(session.first().random);
        for random in session.take_others().into_iter().chain(first) {
            self.rotated.remove(&random);
        }
    }

    /// Records the end of a session, or of its older generations.
    pub(super) fn record_end(&self, session: &Session, extent: EndExtent) -> EndTicket {
        self.record_session_end(
            session.owner(),
            session.owner_id(),
            *session.id(),
            session.created(),
            extent,
        )
    }

    /// Remembers the end of a session in this process.
    fn remember_end(&self, session: &Session, extent: EndExtent) {
        let (owner, id) = (session.owner_id(), *session.id());
        let raised = self.add_end(session.owner(), owner, id, session.created(), extent);
        self.record_overflow(owner, raised);
    }

    /// Records the end of a session that may be in no table, or of its older generations.
    pub(super) fn record_session_end(
        &self,
        owner: Owner<'_>,
        owner_id: ScopeId,
        session: SessionId,
        created: UnixTime,
        extent: EndExtent,
    ) -> EndTicket {
        let extent = match extent {
            EndExtent::ByServer | EndExtent::ByOwner if is_injected(Fault::EndOfOneGeneration) => {
                EndExtent::GenerationsBelow(1)
            }
            extent => extent,
        };
        let raised = self.add_end(owner, owner_id, session, created, extent);
        let ticket = self.journal.record(&SessionEnd::Session {
            owner: owner_id,
            session,
            created,
            extent,
        });
        self.record_overflow(owner_id, raised);
        ticket
    }

    /// Adds a tombstone of an end in this process. Returns the floors that this raised.
    fn add_end(
        &self,
        owner: Owner<'_>,
        owner_id: ScopeId,
        session: SessionId,
        created: UnixTime,
        extent: EndExtent,
    ) -> RaisedFloors {
        let now = self.clock.now();
        let mut raised = self.ends.add(owner_id, session, created, extent, now);
        raised.subject = owner
            .subject_scope()
            .and_then(|subject| self.ends.limit_subject(subject, owner_id, now));
        raised
    }

    /// Records the floors that a full table has raised, and ends their sessions.
    fn record_overflow(&self, owner: ScopeId, raised: RaisedFloors) {
        for (scope, created) in raised.floors(owner) {
            drop(self.journal.record(&SessionEnd::Floor { scope, created }));
        }
        self.end_overflow(owner, raised);
    }

    /// Ends the sessions in this process that the floors of a full table include.
    fn end_overflow(&self, owner: ScopeId, raised: RaisedFloors) {
        for (scope, created) in raised.floors(owner) {
            drop(self.end_created_until(scope, created, EndReason::Overflow));
        }
    }

    /// Ends the sessions of a scope in the table that were created no later than `created`; without
    /// a scope, those of all scopes. Returns those that this call ended.
    fn end_created_until(
        &self,
        scope: Option<ScopeId>,
        created: UnixTime,
        reason: EndReason,
    ) -> Vec<Arc<Session>> {
        let mut sessions = self.sessions_in(scope);
        sessions.retain(|session| session.created() <= created && self.end_here(session, reason));
        sessions
    }

    /// Returns the sessions of a scope in the table; without a scope, all sessions.
    fn sessions_in(&self, scope: Option<ScopeId>) -> Vec<Arc<Session>> {
        let in_table = |is_in: &dyn Fn(&Session) -> bool| {
            let sessions = self.table.iter().filter(|stored| is_in(stored));
            sessions.map(|stored| Arc::clone(&stored)).collect()
        };
        match scope {
            None => in_table(&|_| true),
            Some(scope) if scope.is_wide() => in_table(&|session| {
                EndScope::wide(session.owner(), session.target()).any(|wide| wide.id() == scope)
            }),
            // The index by owner does not contain anonymous sessions.
            Some(owner) if owner == ScopeId::of_owner(Owner::Anonymous) => {
                in_table(&|session| session.owner_id() == owner)
            }
            Some(owner) => self.capacity.sessions_of(owner),
        }
    }
}

impl RaisedFloors {
    fn floors(&self, owner: ScopeId) -> impl Iterator<Item = (Option<ScopeId>, UnixTime)> + use<> {
        let of_owner = self.owner.map(|created| (Some(owner), created));
        let of_subject = self
            .subject
            .map(|(subject, created)| (Some(subject), created));
        of_owner
            .into_iter()
            .chain(of_subject)
            .chain(self.global.map(|created| (None, created)))
    }
}
