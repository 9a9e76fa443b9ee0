//! [`LastUseHeap`]: the sessions of one owner, ordered by last use, to evict the least recently
//! used one.

use std::{ptr, sync::Arc};

use crate::live_session::{Eviction, Session};

/// A binary heap with the least recently used session first. Each session stores its position, so
/// it is removed without a search.
///
/// A use does not update the heap, so the last use in an entry can be earlier than the actual one.
/// A search for the least recently used session corrects the entries that it finds at the top.
/// Operations take logarithmic time; a search takes that time for each corrected entry and each
/// session in use.
#[derive(Default)]
pub(super) struct LastUseHeap(Vec<HeapEntry>);

struct HeapEntry {
    /// Milliseconds of the store's monotonic clock.
    last_used: u64,
    session: Arc<Session>,
}

impl LastUseHeap {
    /// Returns the number of sessions.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the sessions in any order.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.0
            .iter()
            .map(|entry| Arc::clone(&entry.session))
            .collect()
    }

    /// Returns whether at least `count` sessions are not in use now.
    pub(super) fn has_unused(&self, count: usize) -> bool {
        self.0
            .iter()
            .filter(|entry| !entry.session.is_in_use())
            .take(count)
            .count()
            == count
    }

    /// Adds a session, which must not be in another heap.
    pub(super) fn insert(&mut self, session: Arc<Session>) {
        // A session that has ended comes first, so the next search removes it.
        self.push(HeapEntry {
            last_used: session.last_used().unwrap_or(0),
            session,
        });
    }

    /// Removes a session, if the heap contains it.
    pub(super) fn remove(&mut self, session: &Session) {
        let position = session.heap_position();
        if self
            .0
            .get(position)
            .is_some_and(|entry| ptr::eq(&*entry.session, session))
        {
            self.take(position);
        }
    }

    /// Ends and removes the least recently used session that is not in use. If the search finds a
    /// session that has already ended, removes that one instead. Returns `None` if all sessions are
    /// in use.
    pub(super) fn evict(&mut self) -> Option<Evicted> {
        let mut in_use = Vec::new();
        let evicted = loop {
            let Some(first) = self.0.first_mut() else {
                break None;
            };
            match first.session.evict(first.last_used) {
                Eviction::JustEnded => {
                    break self.take(0).map(|HeapEntry { last_used, session }| {
                        Evicted::JustEnded { session, last_used }
                    });
                }
                Eviction::Ended => break self.take(0).map(|_| Evicted::AlreadyEnded),
                Eviction::InUse => in_use.extend(self.take(0)),
                Eviction::UsedSince(last_used) => {
                    first.last_used = last_used;
                    self.sift_down(0);
                }
            }
        };
        in_use.into_iter().for_each(|entry| self.push(entry));
        evicted
    }

    /// Removes and returns the only session, if there is exactly one.
    pub(super) fn take_single(&mut self) -> Option<Arc<Session>> {
        if self.0.len() == 1 {
            self.0.pop().map(|entry| entry.session)
        } else {
            None
        }
    }

    fn push(&mut self, entry: HeapEntry) {
        self.0.push(entry);
        self.sift_up(self.0.len() - 1);
    }

    /// Removes the entry at a position; `None` if there is none.
    fn take(&mut self, position: usize) -> Option<HeapEntry> {
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

    /// Moves an entry towards the top, to its place.
    fn sift_up(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.0[parent].last_used <= self.0[position].last_used {
                break;
            }
            self.0.swap(parent, position);
            self.store_position(position);
            position = parent;
        }
        self.store_position(position);
    }

    /// Moves an entry towards the bottom, to its place.
    fn sift_down(&mut self, mut position: usize) {
        loop {
            let children = 2 * position + 1..self.0.len().min(2 * position + 3);
            let Some(child) = children.min_by_key(|&child| self.0[child].last_used) else {
                break;
            };
            if self.0[position].last_used <= self.0[child].last_used {
                break;
            }
            self.0.swap(position, child);
            self.store_position(position);
            position = child;
        }
        self.store_position(position);
    }

    fn store_position(&self, position: usize) {
        self.0[position].session.set_heap_position(position);
    }
}

/// The session that an eviction has removed from the heap.
pub(super) enum Evicted {
    /// The eviction has ended this session. The caller must remove it from the store.
    JustEnded {
        session: Arc<Session>,
        /// Milliseconds of the store's monotonic clock.
        last_used: u64,
    },
    /// A session had already ended. Another caller removes it from the store.
    AlreadyEnded,
}
