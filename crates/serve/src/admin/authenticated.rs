use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

/// Whether a connection has had a request with a valid token. Clones share the value.
#[derive(Clone, Debug, Default)]
pub(super) struct Authenticated(Arc<AtomicBool>);

impl Authenticated {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Completes after this time if no request has had a valid token by then. Otherwise never
    /// completes.
    pub(super) async fn missing_after(&self, timeout: Duration) {
        sleep(timeout).await;
        if self.0.load(Ordering::Relaxed) {
            pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    /// E12: the limit ends only connections without a valid token.
    #[tokio::test(start_paused = true)]
    async fn only_an_unauthenticated_connection_reaches_the_limit() {
        const LIMIT: Duration = Duration::from_secs(2);
        let authenticated = Authenticated::default();
        let started = Instant::now();
        authenticated.missing_after(LIMIT).await;
        assert_eq!(started.elapsed(), LIMIT);

        authenticated.clone().set();
        assert!(
            timeout(LIMIT * 100, authenticated.missing_after(LIMIT))
                .await
                .is_err()
        );
    }
}
