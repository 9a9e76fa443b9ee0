//! The wait until an action is recorded outside the process.

use std::time::Duration;

use portcullis_session::{EndTicket, NotRecorded};
use tokio::time::timeout;

/// How long a response waits until its action is recorded.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Why an action is not confirmed. It holds in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unconfirmed {
    /// A record has failed.
    Failed,
    /// The action was not recorded within 5 s. It can still be.
    TimedOut,
}

/// Waits until all tickets are complete, at most 5 s. Fails at the first record that fails, and
/// after the time limit.
pub(super) async fn wait(tickets: impl IntoIterator<Item = EndTicket>) -> Result<(), Unconfirmed> {
    let all = async {
        for ticket in tickets {
            ticket.await?;
        }
        Ok(())
    };
    match timeout(CONFIRMATION_TIMEOUT, all).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(NotRecorded)) => Err(Unconfirmed::Failed),
        Err(_) => Err(Unconfirmed::TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// E12: a record that fails differs from one that takes too long, and the wait is bounded.
    #[tokio::test(start_paused = true)]
    async fn failures_and_timeouts_differ() {
        assert_eq!(wait(None).await, Ok(()));
        assert_eq!(wait([EndTicket::done(), EndTicket::done()]).await, Ok(()));
        assert_eq!(
            wait([EndTicket::done(), EndTicket::failed()]).await,
            Err(Unconfirmed::Failed)
        );
        let (_confirmation, pending) = EndTicket::pending();
        let started = Instant::now();
        assert_eq!(wait([pending]).await, Err(Unconfirmed::TimedOut));
        assert_eq!(started.elapsed(), CONFIRMATION_TIMEOUT);
    }
}
