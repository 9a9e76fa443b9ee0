//! Adoption: sessions that are not in the table continue from their sealed identifiers.

use std::sync::Arc;

use dashmap::Entry;
use portcullis_metadata::{Now, Scopes};

use super::{Inner, SessionStore, in_use::InUse, reservation::CapacityPermit, resolving::Found};
use crate::{
    end_reason::EndReason,
    error::ResolveError,
    fault_injection::{Fault, is_injected},
    identifier::{
        self, AssociatedData, Generation, Head, RandomPart, Record, SessionKey, SessionKeys, open,
    },
    live_session::{NewSession, Session, millis},
    owner::Owner,
    scope::SessionTarget,
};

/// An opened identifier.
pub(super) struct Opened<'a> {
    key: &'a SessionKey,
    random: RandomPart,
    text_hash: u64,
    pub(super) record: Record,
}

/// The session of an opened identifier, which is in the table.
enum Entered {
    /// This call has added the session, with a use in progress.
    Adopted(Arc<Session>),
    /// The session was in the table before.
    Known(Arc<Session>),
}

impl SessionStore {
    /// Returns whether the owner ended the session of an identifier that
    /// [`resolve`](Self::resolve) has rejected with [`ResolveError::Ended`]: by
    /// [`EndReason::Deleted`] or [`EndReason::DeleteFailed`], in any process whose records this one
    /// has.
    ///
    /// Returns false if the session ended otherwise, the identifier was not issued to this owner
    /// for this resource, or the end is no longer remembered by itself: the session's lifetime is
    /// over, or the end of several sessions includes it (see **Ends** of [`SessionStore`]).
    pub fn is_ended_by_owner(
        &self,
        target: &SessionTarget,
        owner: Owner<'_>,
        identifier: &[u8],
    ) -> bool {
        let keys = self.0.keys.load();
        identifier::head(identifier)
            .and_then(|head| Opened::new(&keys, head, target, owner, identifier))
            .is_some_and(|Opened { record, .. }| {
                self.0
                    .ends
                    .is_ended_by_owner(owner, &record.session, record.created)
            })
    }

    /// Takes a session into use by an identifier that is not in the table.
    pub(super) fn open_sealed(
        &self,
        head: Head,
        target: &SessionTarget,
        owner: Owner<'_>,
        scopes: &Scopes,
        identifier: &[u8],
    ) -> Result<InUse, ResolveError> {
        let keys = self.0.keys.load();
        let opened =
            Opened::new(&keys, head, target, owner, identifier).ok_or(ResolveError::Unknown)?;
        let now = self.0.clock.read();
        if opened.record.created > now.unix.saturating_add(SessionStore::MAX_AHEAD) {
            return Err(ResolveError::Unknown);
        }
        if self.0.has_ended(target, owner, &opened, now) {
            return Err(ResolveError::Ended);
        }
        if !self.0.journal.is_complete() {
            return Err(ResolveError::NotReady);
        }
        let known = self
            .0
            .table
            .get(&opened.record.session)
            .map(|known| Arc::clone(&known));
        let entered = match known {
            Some(session) => Entered::Known(session),
            None => self.0.adopt(target, owner, &opened, now)?,
        };
        match entered {
            Entered::Adopted(session) => {
                let fingerprint = session.key().scopes_fingerprint(scopes);
                Ok(InUse::new(self.clone(), session, None, fingerprint))
            }
            Entered::Known(session) => {
                let found = self.0.with_generation(session, &opened, now)?;
                self.begin_use(found, target, scopes)?
                    .ok_or(ResolveError::Ended)
            }
        }
    }
}

impl Inner {
    /// Returns whether this process knows that the session of an opened identifier has ended.
    fn has_ended(
        &self,
        target: &SessionTarget,
        owner: Owner<'_>,
        opened: &Opened<'_>,
        now: Now,
    ) -> bool {
        let Opened { key, record, .. } = opened;
        self.is_recorded_as_ended(target, owner, record)
            || record.upstream != key.upstream_hash(target.upstream())
            || (millis(now.unix.saturating_duration_since(record.created))
                >= self.timeouts.lifetime
                && !is_injected(Fault::LifetimeFromFirstSight))
    }

    fn is_recorded_as_ended(
        &self,
        target: &SessionTarget,
        owner: Owner<'_>,
        record: &Record,
    ) -> bool {
        self.ends.contains(
            owner,
            target,
            &record.session,
            record.created,
            record.generation,
        )
    }

    /// Adds the session of an opened identifier to the table, unless the table has it.
    fn adopt(
        self: &Arc<Self>,
        target: &SessionTarget,
        owner: Owner<'_>,
        opened: &Opened<'_>,
        now: Now,
    ) -> Result<Entered, ResolveError> {
        let Opened { key, record, .. } = opened;
        if self.is_idle(record, now) {
            return Err(ResolveError::Ended);
        }
        // Without the backend's identifier, the session has ended with the process that opened it.
        let backend_id = record.backend_id.clone().ok_or(ResolveError::Ended)?;
        let permit = CapacityPermit::reserve(self, owner, Some(&record.session))?;
        let new = NewSession {
            first: opened.generation(now),
            record: record.clone(),
            key: SessionKey::clone(key),
            target: target.clone(),
            encoded_owner: permit.0.encoded_owner.clone(),
            backend_id,
            is_adopted: true,
        };
        let session = Arc::new(Session::new(new, now));
        session.first().mark_used(millis(now.monotonic));
        let evicted = match self.table.entry(record.session) {
            // A concurrent first use has adopted the session.
            Entry::Occupied(known) => return Ok(Entered::Known(Arc::clone(known.get()))),
            Entry::Vacant(entry) => {
                // A session that has left the table meanwhile was recorded as ended before. Its
                // adoption could evict another one.
                if self.is_recorded_as_ended(target, owner, record) {
                    return Err(ResolveError::Ended);
                }
                // This takes the owner's lock while it holds that of the table. No other code holds
                // both.
                let evicted = self.capacity.record(
                    &session,
                    permit.0.elsewhere.of_owner,
                    permit.0.counts_for_subject,
                )?;
                entry.insert(Arc::clone(&session));
                evicted
            }
        };
        permit.0.set_recorded();
        if record.generation > 0 {
            let found = Found {
                session: Arc::clone(&session),
                generation: None,
            };
            self.rotated.insert(session.first().random, found);
        }
        self.finish_evictions(evicted);
        // An end that was recorded in the meantime did not find the session in the table.
        if self.is_recorded_as_ended(target, owner, record) {
            self.end_here(&session, EndReason::EndedElsewhere);
            return Err(ResolveError::Ended);
        }
        self.observer.adopted(&session);
        Ok(Entered::Adopted(session))
    }

    /// Returns whether a session that is not in the table has reached the idle timeout since its
    /// last known use, or since its creation.
    fn is_idle(&self, record: &Record, now: Now) -> bool {
        let age = |since| millis(now.unix.saturating_duration_since(since));
        let is_recently_used = self
            .last_uses
            .get(&record.session)
            .is_some_and(|last_use| age(last_use) < self.timeouts.idle);
        !is_recently_used && age(record.created) >= self.unused_timeout
    }

    /// Adds an opened identifier to its session, unless the session has it.
    fn with_generation(
        &self,
        session: Arc<Session>,
        opened: &Opened<'_>,
        now: Now,
    ) -> Result<Found, ResolveError> {
        if session.first().random == opened.random {
            return Ok(Found {
                session,
                generation: None,
            });
        }
        let generation =
            self.add_generation(&session, opened.generation(now), |_| !session.has_ended());
        let generation = Some(generation.ok_or(ResolveError::Ended)?);
        Ok(Found {
            session,
            generation,
        })
    }
}

impl<'a> Opened<'a> {
    /// Opens an identifier with the key that sealed it. Returns `None` if it was not issued to this
    /// owner for this resource.
    pub(super) fn new(
        keys: &'a SessionKeys,
        Head { epoch, random }: Head,
        target: &SessionTarget,
        owner: Owner<'_>,
        identifier: &[u8],
    ) -> Option<Self> {
        let bound_to = AssociatedData::new(target.resource(), owner);
        keys.of_epoch(epoch).find_map(|key| {
            let record = open(key, &bound_to, identifier)?;
            Some(Self {
                key,
                random,
                text_hash: key.text_hash(identifier),
                record,
            })
        })
    }

    fn generation(&self, now: Now) -> Generation {
        let Record {
            generation,
            fingerprint,
            ..
        } = self.record;
        Generation::new(
            self.random,
            self.text_hash,
            generation,
            fingerprint,
            millis(now.monotonic),
        )
    }
}
