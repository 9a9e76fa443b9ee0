//! The authorizations of the open event streams of one session, which the owner's newer tokens
//! extend.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use portcullis_guard::Caller;
use portcullis_session::Session;
use portcullis_verifier::HeldToken;

use super::authorization::{StreamAuthorization, validity};

/// The value of [`SessionStreams::earliest`] if no stream is open. No token is valid for longer.
const NONE_OPEN: u64 = u64::MAX;

/// The authorizations of a session's open streams. Attached to the session when it opens, or at
/// the first stream of an adopted one.
pub(crate) struct SessionStreams {
    /// The earliest end of validity among the open streams. A token that is not valid for longer
    /// extends none of them.
    earliest: AtomicU64,
    open: Mutex<Vec<Arc<StreamAuthorization>>>,
}

impl SessionStreams {
    /// Returns the streams of this session, attached to it if they are not yet. `None` if another
    /// value is attached.
    pub(crate) fn of(session: &Session) -> Option<Arc<Self>> {
        session
            .attach(|| {
                Arc::new(Self {
                    earliest: AtomicU64::new(NONE_OPEN),
                    open: Mutex::default(),
                })
            })
            .cloned()
    }

    /// Returns the number of open streams of a session.
    pub(super) fn count(session: &Session) -> usize {
        session
            .attachment::<Arc<Self>>()
            .map_or(0, |streams| streams.open.lock().len())
    }

    /// Replaces the token of each open stream by that of an admitted request in the session, if the
    /// new token is valid for longer and has at least the scopes of the token that opened the
    /// stream. Implied scopes do not count.
    ///
    /// Takes no lock unless the new token is valid for longer than that of some stream.
    pub(crate) fn token_used(session: &Session, caller: &Caller) {
        if let Some(streams) = session.attachment::<Arc<Self>>() {
            streams.extend(caller);
        }
    }

    /// See [`token_used`](Self::token_used).
    fn extend(&self, caller: &Caller) {
        let Some(verified) = caller.verified() else {
            return;
        };
        let valid_until = validity(verified, caller.held_token().is_some());
        if valid_until <= self.earliest.load(Ordering::Relaxed) {
            return;
        }
        let is_extended = |stream: &&Arc<StreamAuthorization>| {
            valid_until > stream.valid_until()
                && stream.is_covered_by(verified.principal().scopes())
        };
        let open = self.open.lock();
        let mut extended = open.iter().filter(is_extended).peekable();
        if extended.peek().is_none() {
            return;
        }
        let watched = caller.held_token().and_then(HeldToken::watch);
        if verified.principal().is_introspected() && watched.is_none() {
            return;
        }
        for stream in extended {
            stream.replace(valid_until, watched.clone());
        }
        self.store_earliest(&open);
    }

    /// Adds a stream that opens.
    pub(super) fn add(&self, stream: &Arc<StreamAuthorization>) {
        let mut open = self.open.lock();
        open.push(Arc::clone(stream));
        self.store_earliest(&open);
    }

    /// Removes a stream that ends.
    pub(super) fn remove(&self, stream: &Arc<StreamAuthorization>) {
        let mut open = self.open.lock();
        let removed = open
            .iter()
            .position(|other| Arc::ptr_eq(other, stream))
            .map(|place| open.swap_remove(place));
        if open.is_empty() {
            // The memory of many streams is not kept.
            *open = Vec::new();
        }
        self.store_earliest(&open);
        drop(open);
        drop(removed);
    }

    /// Updates the earliest validity after that of a stream has changed.
    pub(super) fn update_earliest(&self) {
        self.store_earliest(&self.open.lock());
    }

    fn store_earliest(&self, open: &[Arc<StreamAuthorization>]) {
        let earliest = open.iter().map(|stream| stream.valid_until()).min();
        self.earliest
            .store(earliest.unwrap_or(NONE_OPEN), Ordering::Relaxed);
    }
}
