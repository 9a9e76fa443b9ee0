//! The sessions of one owner, ordered by their last use.

use std::{ptr, sync::Arc};

use crate::{Session, session::Eviction};

/// A binary heap with the least recently used session first. A session knows its position, so that it can be removed
/// without a search.
///
/// A use does not touch the heap: it is filed by the last use that was seen, which is never later than the real one, and
/// is moved when a search for the least recently used session meets it. So each operation takes logarithmic time, but for the
/// sessions in use that a search passes.
#[derive(Default)]
pub(crate) struct ByLastUse(Vec<Filed>);

struct Filed {
    /// Milliseconds of the store's monotonic clock.
    last_used: u64,
    session: Arc<Session>,
}

impl ByLastUse {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are at least `count` sessions that are not in use at this moment.
    pub(crate) fn has_unused(&self, count: usize) -> bool {
        self.0.iter().filter(|filed| !filed.session.is_in_use()).take(count).count() == count
    }

    pub(crate) fn insert(&mut self, session: Arc<Session>) {
        // One that has ended comes first: the next search drops it.
        self.file(Filed { last_used: session.last_used().unwrap_or(0), session });
    }

    /// Removes a session, if it is there.
    pub(crate) fn remove(&mut self, session: &Session) {
        let position = session.position();
        if self.0.get(position).is_some_and(|filed| ptr::eq(&*filed.session, session)) {
            self.take(position);
        }
    }

    /// Removes the least recently used session that is not in use, and ends it. Sessions that have ended already, and are
    /// about to be removed, go first. Returns `None` when all are in use.
    pub(crate) fn evict(&mut self) -> Option<Evicted> {
        let mut in_use = Vec::new();
        let evicted = loop {
            let Some(first) = self.0.first_mut() else { break None };
            match first.session.evict(first.last_used) {
                Eviction::JustEnded => {
                    break self.take(0).map(|Filed { last_used, session }| Evicted::JustEnded { session, last_used });
                }
                Eviction::Ended => break self.take(0).map(|_| Evicted::Before),
                Eviction::InUse => in_use.extend(self.take(0)),
                Eviction::UsedSince(last_used) => {
                    first.last_used = last_used;
                    self.sift_down(0);
                }
            }
        };
        in_use.into_iter().for_each(|filed| self.file(filed));
        evicted
    }

    /// Takes out the only session, if there is exactly one.
    pub(crate) fn take_single(&mut self) -> Option<Arc<Session>> {
        if self.0.len() == 1 { self.0.pop().map(|filed| filed.session) } else { None }
    }

    fn file(&mut self, filed: Filed) {
        self.0.push(filed);
        self.sift_up(self.0.len() - 1);
    }

    fn take(&mut self, position: usize) -> Option<Filed> {
        if position >= self.0.len() {
            return None;
        }
        let taken = self.0.swap_remove(position);
        if position < self.0.len() {
            self.sift_up(position);
            self.sift_down(position);
        }
        Some(taken)
    }

    fn sift_up(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.0[parent].last_used <= self.0[position].last_used {
                break;
            }
            self.0.swap(parent, position);
            self.note_position(position);
            position = parent;
        }
        self.note_position(position);
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let children = 2 * position + 1..self.0.len().min(2 * position + 3);
            let Some(child) = children.min_by_key(|&child| self.0[child].last_used) else { break };
            if self.0[position].last_used <= self.0[child].last_used {
                break;
            }
            self.0.swap(position, child);
            self.note_position(position);
            position = child;
        }
        self.note_position(position);
    }

    fn note_position(&self, position: usize) {
        self.0[position].session.set_position(position);
    }
}

/// What made a place free.
pub(crate) enum Evicted {
    /// This session ended by the eviction: the caller must remove it from the store.
    JustEnded {
        session: Arc<Session>,
        /// Milliseconds of the store's monotonic clock.
        last_used: u64,
    },
    /// A session had ended by then, and is about to be removed from the store.
    Before,
}
