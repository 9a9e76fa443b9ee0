//! The uses in progress, the last use and the end of a session, in one atomic word.

use std::sync::atomic::{AtomicU64, Ordering};

/// The state of one session. Each change is a compare-and-swap of the whole word, so that uses and ends exclude each other:
/// an end that requires an unused session fails if a use is in progress or has happened meanwhile, and no use begins after
/// an end.
///
/// The upper 40 bits contain the last use in milliseconds since the session was opened, up to 34 years. The lower 24 bits
/// count the uses in progress.
pub(crate) struct UseState(AtomicU64);

/// The decoded state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Active(Usage),
    Ended,
}

/// The use of a session that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Milliseconds from the opening of the session to its last use.
    pub(crate) last_used: u64,
    /// Uses in progress.
    pub(crate) uses: u64,
}

const USES_BITS: u32 = 24;
const MAX_USES: u64 = (1 << USES_BITS) - 1;
/// One less than the maximum of 40 bits, so that no active session has the word of an ended one.
const MAX_TIME: u64 = (1 << (u64::BITS - USES_BITS)) - 2;
const ENDED: u64 = u64::MAX;

impl UseState {
    /// Returns the state of a session that has just been opened, with one use in progress.
    pub(crate) fn opened() -> Self {
        Self(AtomicU64::new(pack(State::Active(Usage { last_used: 0, uses: 1 }))))
    }

    pub(crate) fn load(&self) -> State {
        unpack(self.0.load(Ordering::Acquire))
    }

    /// Replaces the state of an active session by that of `decide`, and returns the result of `decide`. `decide` may be
    /// called several times; the last call counts. Returns `None` if the session has ended.
    pub(crate) fn change<T>(&self, decide: impl Fn(Usage) -> (State, T)) -> Option<T> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let State::Active(usage) = unpack(word) else { return None };
            let (next, result) = decide(usage);
            let next = pack(next);
            if next == word {
                return Some(result);
            }
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(result),
                Err(newer) => word = newer,
            }
        }
    }

    /// Ends the session if its state is still `usage`. Returns whether it did.
    pub(crate) fn end_unchanged(&self, usage: Usage) -> bool {
        self.0.compare_exchange(pack(State::Active(usage)), ENDED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Usage {
    /// Returns the usage with another use that begins now; `None` at 16,777,215 uses.
    pub(crate) fn begun(self, now: u64) -> Option<Self> {
        (self.uses < MAX_USES).then(|| Self { last_used: self.last_used.max(now), uses: self.uses + 1 })
    }

    /// Returns the usage without a use that ends now.
    pub(crate) fn finished(self, now: u64) -> Self {
        Self { last_used: self.last_used.max(now), uses: self.uses.saturating_sub(1) }
    }
}

fn pack(state: State) -> u64 {
    match state {
        State::Active(Usage { last_used, uses }) => last_used.min(MAX_TIME) << USES_BITS | uses.min(MAX_USES),
        State::Ended => ENDED,
    }
}

fn unpack(word: u64) -> State {
    if word == ENDED {
        return State::Ended;
    }
    State::Active(Usage { last_used: word >> USES_BITS, uses: word & MAX_USES })
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use super::*;

    fn active(last_used: u64, uses: u64) -> State {
        State::Active(Usage { last_used, uses })
    }

    /// E9: no active session has the word of an ended session.
    #[test]
    fn words_are_unambiguous() {
        for state in [active(0, 0), active(0, MAX_USES), active(MAX_TIME, 0), active(MAX_TIME, MAX_USES), State::Ended]
        {
            assert_eq!(unpack(pack(state)), state);
        }
        assert_eq!(unpack(pack(active(u64::MAX, u64::MAX))), active(MAX_TIME, MAX_USES));
    }

    #[test]
    fn uses_are_bounded() {
        let usage = Usage { last_used: 5, uses: MAX_USES - 1 };
        let full = usage.begun(4).unwrap();
        assert_eq!(full, Usage { last_used: 5, uses: MAX_USES });
        assert_eq!(full.begun(6), None);
        assert_eq!(full.finished(6), Usage { last_used: 6, uses: MAX_USES - 1 });
        assert_eq!(Usage { last_used: 0, uses: 0 }.finished(0).uses, 0);
    }

    /// E9: a session ends once, and only in the state that was seen.
    #[test]
    fn an_end_requires_the_state_that_was_seen() {
        let state = UseState::opened();
        let State::Active(opened) = state.load() else { panic!("the session has ended") };
        let used = state.change(|usage| (State::Active(usage.finished(7)), usage.finished(7))).unwrap();
        assert!(!state.end_unchanged(opened));
        assert!(state.end_unchanged(used));
        assert!(!state.end_unchanged(used));
        assert_eq!((state.load(), state.change(|usage| (State::Active(usage), ()))), (State::Ended, None));
    }

    /// E9: a session does not end while another thread uses it.
    #[test]
    fn uses_and_ends_exclude_each_other() {
        for _ in 0..2_000 {
            let (state, barrier) = (UseState::opened(), Barrier::new(3));
            state.change(|usage| (State::Active(usage.finished(0)), ()));
            thread::scope(|scope| {
                for now in [1, 2] {
                    let (state, barrier) = (&state, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        let begun = state.change(|usage| (usage.begun(now).map_or(State::Ended, State::Active), ()));
                        if begun.is_some() {
                            assert_ne!(state.load(), State::Ended);
                            thread::yield_now();
                            assert_ne!(state.load(), State::Ended);
                            assert!(state.change(|usage| (State::Active(usage.finished(now)), ())).is_some());
                        }
                    });
                }
                barrier.wait();
                while !matches!(state.load(), State::Active(usage) if usage.uses == 0 && state.end_unchanged(usage)) {
                    thread::yield_now();
                }
            });
            assert_eq!(state.load(), State::Ended);
        }
    }
}
