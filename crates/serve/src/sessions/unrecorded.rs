use std::time::Duration;

use portcullis_audit::Audit;
use portcullis_session::EndTicket;
use tokio::time::{Instant, timeout_at};

/// How long the records of ends are waited for.
const RECORD_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until these ends are recorded, at most 60 s, and reports those that are not, in the log
/// and the audit trail.
pub(crate) fn report_later(tickets: Vec<EndTicket>, audit: Option<Audit>) {
    if tickets.is_empty() {
        return;
    }
    tokio::spawn(async move {
        let unrecorded = count_unrecorded(tickets).await;
        if unrecorded == 0 {
            return;
        }
        tracing::warn!(
            error.code = "session.end_not_recorded",
            ends.unrecorded = unrecorded,
            "sessions that the new configuration ends can continue after a restart or on other replicas: their end could not \
             be recorded; restore state_dir, or Redis if sessions are shared, and do not add what was removed again before \
             session.lifetime is over"
        );
        if let Some(audit) = audit {
            audit.ends_not_recorded(unrecorded);
        }
    });
}

/// Waits until these ends are recorded, at most 60 s. Returns the number of those that are not.
pub(crate) async fn count_unrecorded(tickets: Vec<EndTicket>) -> usize {
    let deadline = Instant::now() + RECORD_TIMEOUT;
    let mut unrecorded = 0;
    for ticket in tickets {
        if !matches!(timeout_at(deadline, ticket).await, Ok(Ok(()))) {
            unrecorded += 1;
        }
    }
    unrecorded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E12, J10: ends whose record fails or is never confirmed are counted, and the wait is
    /// bounded.
    #[tokio::test(start_paused = true)]
    async fn unrecorded_ends_are_counted() {
        assert_eq!(
            count_unrecorded(vec![EndTicket::done(), EndTicket::done()]).await,
            0
        );
        let (dropped, failing) = EndTicket::pending();
        let (confirmation, recorded) = EndTicket::pending();
        let (_never, waiting) = EndTicket::pending();
        drop(dropped);
        confirmation.confirm();
        let started = Instant::now();
        assert_eq!(
            count_unrecorded(vec![failing, waiting, recorded, EndTicket::failed()]).await,
            3
        );
        assert_eq!(started.elapsed(), RECORD_TIMEOUT);
    }
}
