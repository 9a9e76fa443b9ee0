//! [`Refreshes`]: the refresh requests in progress, so that a process does not end during one.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::TokenManager;
use crate::ClientError;

/// The refresh requests in progress.
#[derive(Debug)]
pub(super) struct Refreshes(Semaphore);

/// More than the refreshes that can be in progress: a token manager sends one at a time, except
/// after cancelled requests.
const MAX: u32 = 1024;

impl Default for Refreshes {
    fn default() -> Self {
        Self(Semaphore::new(MAX as usize))
    }
}

impl Refreshes {
    /// Begins a refresh, which ends when the result is dropped. Fails with
    /// [`ClientError::TaskEnded`] after [`finish`](Self::finish).
    pub(super) async fn begin(&self) -> Result<SemaphorePermit<'_>, ClientError> {
        self.0.acquire().await.map_err(|_| ClientError::TaskEnded)
    }

    /// Waits until no refresh is in progress. No other one begins from the call on.
    async fn finish(&self) {
        // The queue of the semaphore is fair: a refresh that begins now waits until it is closed.
        // It is closed already if this was called before.
        let _all = self.0.acquire_many(MAX).await;
        self.0.close();
    }
}

impl TokenManager {
    /// Waits until every refresh request that was sent has a response and its tokens are stored.
    /// Further refreshes fail.
    ///
    /// Call it before the process ends: a server that rotates refresh tokens has invalidated the
    /// stored one when it responds, so that the sign-in would be lost. It waits as long as the
    /// server takes; the caller sets a limit.
    pub async fn finish_refreshes(&self) {
        self.refreshes.finish().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::timeout;

    use super::*;

    /// I5: the end waits for the refreshes in progress, and none begins from then on.
    #[tokio::test(start_paused = true)]
    async fn the_end_waits_for_refreshes() {
        let refreshes = Arc::new(Refreshes::default());
        let first = refreshes.begin().await.unwrap();
        let ending = tokio::spawn({
            let refreshes = Arc::clone(&refreshes);
            async move { refreshes.finish().await }
        });
        tokio::task::yield_now().await;
        let later = tokio::spawn({
            let refreshes = Arc::clone(&refreshes);
            async move { refreshes.begin().await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!ending.is_finished());
        drop(first);
        timeout(Duration::from_secs(5), ending)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            later.await.unwrap().unwrap_err().code(),
            "client.interrupted"
        );
        refreshes.finish().await;
    }
}
