//! How an identifier in a request leads to a session in the table.

use std::sync::{Arc, atomic::Ordering};

use portcullis_metadata::Scopes;

use super::{Inner, SessionStore, in_use::InUse};
use crate::{
    end_reason::EndReason,
    error::ResolveError,
    identifier::{self, Generation, RandomPart},
    live_session::{Session, Status, millis},
    owner::Owner,
    scope::SessionTarget,
};

/// A session and the identifier by which it was found. `None` stands for [`Session::first`].
#[derive(Clone)]
pub(super) struct Found {
    pub(super) session: Arc<Session>,
    pub(super) generation: Option<Arc<Generation>>,
}

impl SessionStore {
    /// Takes the session with this identifier, target and owner into use, until the returned value
    /// is dropped. `scopes` are those of the caller's token; see [`InUse::rotated_identifier`].
    /// Allocates nothing if the session is in the table.
    ///
    /// The caller must have authenticated the owner. The identifier itself authenticates nothing.
    ///
    /// # Errors
    /// - [`ResolveError::Unknown`] if the identifier was not issued to this owner for this
    ///   resource. A session of another owner is not affected.
    /// - [`ResolveError::Ended`] if the session has ended, or has 16,777,215 uses in progress.
    /// - [`ResolveError::NotReady`] or [`ResolveError::Capacity`] if the session is not in the
    ///   table and cannot be adopted now.
    pub fn resolve(
        &self,
        target: &SessionTarget,
        owner: Owner<'_>,
        scopes: &Scopes,
        identifier: &[u8],
    ) -> Result<InUse, ResolveError> {
        let head = identifier::head(identifier).ok_or(ResolveError::Unknown)?;
        if let Some(found) = self.0.find(&head.random)
            && found.session.belongs_to(target.resource(), owner)
            && found.is_named(identifier)
            && self.0.has_listed_key(&found.session)
            && let Some(in_use) = self.begin_use(found, target, scopes)?
        {
            return Ok(in_use);
        }
        self.open_sealed(head, target, owner, scopes, identifier)
    }

    /// Begins a use of a session in the table. Returns `None` if the session has just left the
    /// table or is about to.
    pub(super) fn begin_use(
        &self,
        found: Found,
        target: &SessionTarget,
        scopes: &Scopes,
    ) -> Result<Option<InUse>, ResolveError> {
        let Found {
            session,
            generation,
        } = found;
        if session.target() != target {
            return Err(ResolveError::Ended);
        }
        let now = self.0.clock.monotonic();
        if let Some(lowest) = session.due_lowest_generation(now) {
            self.0.end_generations(&session, lowest);
        }
        let current = generation.as_deref().unwrap_or_else(|| session.first());
        if current.number < session.lowest_generation() {
            return Err(ResolveError::Ended);
        }
        if self.0.has_peers && session.expired(now, self.0.timeouts) == Some(EndReason::Idle) {
            // If another process has used the session, it is released, and adopted again by its
            // identifier.
            self.0.expire(&session, now);
            return Ok(None);
        }
        match session.begin_use(now, self.0.timeouts) {
            Status::Active => {
                current.mark_used(millis(now));
                let fingerprint = session.key().scopes_fingerprint(scopes);
                Ok(Some(InUse::new(
                    self.clone(),
                    session,
                    generation,
                    fingerprint,
                )))
            }
            Status::JustEnded(reason) => {
                self.0.remove(&session, reason);
                Err(ResolveError::Ended)
            }
            Status::Ended => Ok(None),
        }
    }

    pub(super) fn end_use(&self, session: &Session) {
        if let Status::JustEnded(reason) =
            session.end_use(self.0.clock.monotonic(), self.0.timeouts)
        {
            self.0.remove(session, reason);
        }
    }
}

impl Inner {
    /// Returns the session in the table that has an identifier with this random part.
    fn find(&self, random: &RandomPart) -> Option<Found> {
        match self.table.get(random) {
            Some(stored) => Some(Found {
                session: Arc::clone(&stored),
                generation: None,
            }),
            None => self.rotated.get(random).map(|stored| stored.clone()),
        }
    }

    /// Returns whether the key list still contains the key of a session.
    fn has_listed_key(&self, session: &Session) -> bool {
        let generation = self.key_generation.load(Ordering::Acquire);
        let is_listed =
            session.is_known_as_listed(generation) || self.keys.load().contains(session.key());
        if is_listed {
            session.set_listed(generation);
        }
        is_listed
    }
}

impl Found {
    /// Returns whether the whole identifier is that of the session, and not only its random part.
    /// The comparison of hashes suffices: the caller is the owner, and the identifier authorizes
    /// nothing.
    fn is_named(&self, identifier: &[u8]) -> bool {
        let generation = self
            .generation
            .as_deref()
            .unwrap_or_else(|| self.session.first());
        generation.text_hash == self.session.key().text_hash(identifier)
    }
}
