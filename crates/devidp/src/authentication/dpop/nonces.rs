use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use portcullis_authorization_server::{RandomError, random_secret};
use portcullis_metadata::{Clock, Secret};

/// The maximum time for which a nonce is issued. It is accepted for the same time afterwards.
const NONCE_LIFETIME: Duration = Duration::from_secs(300);

/// The server's nonces (RFC 9449 section 8).
pub(super) struct Nonces {
    state: Mutex<NonceState>,
    clock: Arc<dyn Clock>,
}

struct NonceState {
    current: Secret,
    /// The nonce before it, which is still accepted.
    previous: Option<Secret>,
    /// The monotonic time from which the current one is issued.
    since: Duration,
}

impl Nonces {
    /// Generates the first nonce.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Result<Self, RandomError> {
        let state = NonceState {
            current: generate_nonce()?,
            previous: None,
            since: clock.monotonic(),
        };
        Ok(Self {
            state: Mutex::new(state),
            clock,
        })
    }

    /// Returns the current nonce and replaces it when its lifetime is over.
    pub(super) fn current(&self) -> Result<Secret, RandomError> {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        let age = now.saturating_sub(state.since);
        if age >= NONCE_LIFETIME {
            let replaced = std::mem::replace(&mut state.current, generate_nonce()?);
            if age < 2 * NONCE_LIFETIME {
                // The lifetimes follow one another, so a late replacement does not extend that of
                // the replaced nonce.
                state.previous = Some(replaced);
                state.since = state.since.saturating_add(NONCE_LIFETIME);
            } else {
                state.previous = None;
                state.since = now;
            }
        }
        Ok(state.current.clone())
    }

    /// Returns whether a nonce is the current one or the one before it.
    pub(super) fn accepts(&self, nonce: &str) -> bool {
        let Ok(current) = self.current() else {
            return false;
        };
        let nonce = Secret::new(nonce);
        let state = self.state.lock();
        nonce == current || state.previous.as_ref() == Some(&nonce)
    }
}

fn generate_nonce() -> Result<Secret, RandomError> {
    random_secret(16)
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::ManualClock;

    use super::*;

    /// K1: a nonce is accepted while it is issued, and for the same time afterwards.
    #[test]
    fn nonces_are_replaced() {
        for (name, waits, is_accepted) in [
            ("at once", &[0][..], true),
            ("before it is replaced", &[299], true),
            ("after it is replaced", &[300], true),
            ("just before its end", &[300, 299], true),
            ("after its end", &[300, 300], false),
            ("after its end, replaced late", &[599, 1], false),
            ("after a long time", &[600], false),
        ] {
            let clock = Arc::new(ManualClock::new());
            let nonces = Nonces::new(Arc::clone(&clock) as _).unwrap();
            let first = nonces.current().unwrap();
            for seconds in waits {
                clock.advance(Duration::from_secs(*seconds));
                nonces.current().unwrap();
            }
            assert_eq!(nonces.accepts(first.secret()), is_accepted, "{name}");
        }
        let nonces = Nonces::new(Arc::new(ManualClock::new())).unwrap();
        assert!(!nonces.accepts(""));
        assert!(!nonces.accepts("another"));
    }
}
