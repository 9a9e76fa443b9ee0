//! The state of a session in one atomic word: the uses in progress and the last use, or the end.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::end_reason::EndReason;

/// The usage of an active session, or its end.
///
/// The usage and the end share one word, which changes only as a whole. A use and an end therefore
/// exclude each other: no use begins after the end, and an end that requires an unused session
/// fails if a use has begun in the meantime.
///
/// The upper 40 bits contain [`Usage::last_used`], up to 34 years. The lower 24 bits contain
/// [`Usage::uses`]. The word with all bits set is the end.
pub(crate) struct UseState(AtomicU64);

/// The usage of an active session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The time from the opening of the session to its last use, in milliseconds.
    pub(crate) last_used: u64,
    /// The number of uses in progress.
    pub(crate) uses: u64,
}

/// A change of an active session.
pub(crate) enum Change {
    /// The session continues with this usage.
    Continue(Usage),
    /// The session ends.
    End(EndReason),
    /// The session continues without a change, because no other use can begin.
    Refuse,
}

/// The status of a session after a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The session continues, and the change was made.
    Active,
    /// The change has ended the session. The caller must remove it from the store.
    JustEnded(EndReason),
    /// The session had already ended, or the change was refused.
    Ended,
}

const USES_BITS: u32 = 24;
const MAX_USES: u64 = (1 << USES_BITS) - 1;
/// One less than the maximum of 40 bits, so that no active session has the word of an ended one.
const MAX_TIME: u64 = (1 << (u64::BITS - USES_BITS)) - 2;
const ENDED: u64 = u64::MAX;

impl UseState {
    /// Returns the state of a session that has just been opened, with one use in progress.
    pub(crate) fn opened() -> Self {
        Self(AtomicU64::new(pack(Usage {
            last_used: 0,
            uses: 1,
        })))
    }

    /// Returns the usage; `None` if the session has ended.
    pub(crate) fn usage(&self) -> Option<Usage> {
        unpack(self.0.load(Ordering::Acquire))
    }

    /// Makes the change that `decide` returns for the current usage. `decide` is called again if
    /// the usage has changed in the meantime.
    pub(crate) fn change(&self, decide: impl Fn(Usage) -> Change) -> Status {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let Some(usage) = unpack(word) else {
                return Status::Ended;
            };
            let (next, status) = match decide(usage) {
                Change::Continue(usage) => (pack(usage), Status::Active),
                Change::End(reason) => (ENDED, Status::JustEnded(reason)),
                Change::Refuse => return Status::Ended,
            };
            if next == word {
                return status;
            }
            match self
                .0
                .compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return status,
                Err(newer) => word = newer,
            }
        }
    }

    /// Ends the session. Returns whether it was active.
    pub(crate) fn end(&self) -> bool {
        self.0.swap(ENDED, Ordering::AcqRel) != ENDED
    }

    /// Ends the session if its usage is still `expected`. Returns whether this call has ended it.
    pub(crate) fn end_if(&self, expected: Usage) -> bool {
        self.0
            .compare_exchange(pack(expected), ENDED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

impl Usage {
    /// Returns the usage with another use that begins now; `None` at 16,777,215 uses.
    pub(crate) fn begun(self, now: u64) -> Option<Self> {
        (self.uses < MAX_USES).then(|| Self {
            last_used: self.last_used.max(now),
            uses: self.uses + 1,
        })
    }

    /// Returns the usage after one of the uses has ended now.
    pub(crate) fn finished(self, now: u64) -> Self {
        Self {
            last_used: self.last_used.max(now),
            uses: self.uses.saturating_sub(1),
        }
    }
}

fn pack(usage: Usage) -> u64 {
    usage.last_used.min(MAX_TIME) << USES_BITS | usage.uses.min(MAX_USES)
}

fn unpack(word: u64) -> Option<Usage> {
    (word != ENDED).then_some(Usage {
        last_used: word >> USES_BITS,
        uses: word & MAX_USES,
    })
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use super::*;

    fn usage(last_used: u64, uses: u64) -> Usage {
        Usage { last_used, uses }
    }

    /// E9: no active session has the word of an ended session.
    #[test]
    fn words_are_unambiguous() {
        for usage in [
            usage(0, 0),
            usage(0, MAX_USES),
            usage(MAX_TIME, 0),
            usage(MAX_TIME, MAX_USES),
        ] {
            assert_eq!(unpack(pack(usage)), Some(usage));
        }
        assert_eq!(unpack(ENDED), None);
        assert_eq!(
            unpack(pack(usage(u64::MAX, u64::MAX))),
            Some(usage(MAX_TIME, MAX_USES))
        );
    }

    #[test]
    fn uses_are_bounded() {
        let full = usage(5, MAX_USES - 1).begun(4).unwrap();
        assert_eq!(full, usage(5, MAX_USES));
        assert_eq!(full.begun(6), None);
        assert_eq!(full.finished(6), usage(6, MAX_USES - 1));
        assert_eq!(usage(0, 0).finished(0).uses, 0);
    }

    /// E9: a session ends once, and only with the usage that was expected.
    #[test]
    fn an_end_requires_the_expected_usage() {
        let state = UseState::opened();
        let opened = state.usage().unwrap();
        assert_eq!(
            state.change(|usage| Change::Continue(usage.finished(7))),
            Status::Active
        );
        let used = state.usage().unwrap();
        assert_eq!(used, usage(7, 0));
        assert!(!state.end_if(opened));
        assert!(state.end_if(used));
        assert!(!state.end_if(used));
        assert!(!state.end());
        assert_eq!(state.usage(), None);
        assert_eq!(state.change(Change::Continue), Status::Ended);
    }

    #[test]
    fn a_refused_change_changes_nothing() {
        let state = UseState::opened();
        assert_eq!(state.change(|_| Change::Refuse), Status::Ended);
        assert_eq!(state.usage(), Some(usage(0, 1)));
        let idle = Status::JustEnded(EndReason::Idle);
        assert_eq!(state.change(|_| Change::End(EndReason::Idle)), idle);
        assert_eq!(state.usage(), None);
    }

    /// E9: a session does not end while another thread uses it.
    #[test]
    fn uses_and_ends_exclude_each_other() {
        for _ in 0..2_000 {
            let state = UseState::opened();
            let barrier = Barrier::new(3);
            state.change(|usage| Change::Continue(usage.finished(0)));
            thread::scope(|scope| {
                for now in [1, 2] {
                    let state = &state;
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        let begun = state.change(|usage| {
                            usage.begun(now).map_or(Change::Refuse, Change::Continue)
                        });
                        if begun == Status::Active {
                            assert_ne!(state.usage(), None);
                            thread::yield_now();
                            assert_ne!(state.usage(), None);
                            assert_eq!(
                                state.change(|usage| Change::Continue(usage.finished(now))),
                                Status::Active
                            );
                        }
                    });
                }
                barrier.wait();
                while !state
                    .usage()
                    .is_some_and(|usage| usage.uses == 0 && state.end_if(usage))
                {
                    thread::yield_now();
                }
            });
            assert_eq!(state.usage(), None);
        }
    }
}
