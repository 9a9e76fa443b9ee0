//! Time as a worker sees it: one reading serves all that happens in one turn of a connection.
//!
//! A turn, one poll of a connection, takes microseconds, and what judges it (the age of a token or a session, a limit,
//! an idle upstream connection) counts in milliseconds and more. Only what is measured itself is read anew.

use std::{cell::Cell, sync::Arc, time::Duration};

use portcullis_metadata::{Clock, UnixTime};

thread_local! {
    static TURN: Cell<Option<Readings>> = const { Cell::new(None) };
}

/// What was read in the present turn.
#[derive(Clone, Copy, Default)]
struct Readings {
    unix: Option<UnixTime>,
    monotonic: Option<Duration>,
}

/// Takes a turn. What was read in it is forgotten at its end.
pub(super) fn take<T>(turn: impl FnOnce() -> T) -> T {
    /// Ends the turn, be it by a panic.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            TURN.set(None);
        }
    }
    TURN.set(Some(Readings::default()));
    let _end = End;
    turn()
}

/// The clocks of a process, of which there is one pair.
pub(super) struct Clocks {
    /// Reads anew each time, and remembers for [`turn`](Self::turn).
    pub(super) exact: Arc<dyn Clock>,
    /// The latest reading of the turn; outside of turns it reads anew.
    pub(super) turn: Arc<dyn Clock>,
}

impl Clocks {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let exact = Arc::new(Exact(clock));
        Self { exact: Arc::clone(&exact) as _, turn: Arc::new(Latest(exact)) }
    }
}

struct Exact(Arc<dyn Clock>);

struct Latest(Arc<Exact>);

impl Clock for Exact {
    fn now(&self) -> UnixTime {
        let now = self.0.now();
        TURN.set(TURN.get().map(|readings| Readings { unix: Some(now), ..readings }));
        now
    }

    fn monotonic(&self) -> Duration {
        let now = self.0.monotonic();
        TURN.set(TURN.get().map(|readings| Readings { monotonic: Some(now), ..readings }));
        now
    }
}

impl Clock for Latest {
    fn now(&self) -> UnixTime {
        TURN.get().and_then(|readings| readings.unix).unwrap_or_else(|| self.0.now())
    }

    fn monotonic(&self) -> Duration {
        TURN.get().and_then(|readings| readings.monotonic).unwrap_or_else(|| self.0.monotonic())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Tells another time at each reading.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Clock for Counting {
        fn now(&self) -> UnixTime {
            UnixTime::from_secs(self.0.fetch_add(1, Ordering::Relaxed))
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    #[test]
    fn a_reading_serves_its_turn_and_no_longer() {
        let Clocks { exact, turn } = Clocks::new(Arc::new(Counting::default()));
        let first = take(|| {
            let first = (turn.monotonic(), turn.now());
            assert_eq!((turn.monotonic(), turn.now()), first);
            let newer = (exact.monotonic(), exact.now());
            assert!(newer.0 > first.0 && newer.1 > first.1);
            assert_eq!((turn.monotonic(), turn.now()), newer);
            newer
        });
        let outside = turn.monotonic();
        assert!(outside > first.0);
        assert!(turn.monotonic() > outside && turn.now() > first.1);
        take(|| assert!(turn.monotonic() > outside));
    }

    #[test]
    fn a_turn_ends_with_a_panic() {
        let Clocks { turn, .. } = Clocks::new(Arc::new(Counting::default()));
        let clock = Arc::clone(&turn);
        let within =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| take(|| panic!("{:?}", clock.monotonic()))));
        assert!(within.is_err());
        assert_ne!(turn.monotonic(), turn.monotonic());
    }
}
