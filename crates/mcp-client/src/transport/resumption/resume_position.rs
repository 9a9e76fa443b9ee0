//! [`ResumePosition`]: where an interrupted event stream is resumed, and after which delay.

use std::time::Duration;

use http::HeaderValue;

use super::backoff;

/// The maximum length of an event identifier to resume after: it is sent in a header.
const MAX_EVENT_ID: usize = 4096;
/// The minimum and the maximum of the server's `retry` field.
pub(super) const MIN_RETRY: Duration = Duration::from_millis(20);
const MAX_RETRY: Duration = Duration::from_secs(60 * 60);

/// What the events of a stream say about its resumption: the last event identifier and the
/// reconnection time (HTML section 9.2.6).
#[derive(Clone, Debug, Default)]
pub struct ResumePosition {
    last_event_id: Option<String>,
    retry: Option<Duration>,
}

impl ResumePosition {
    /// Records the `id` field and the `retry` field, in milliseconds, of an event. An empty
    /// identifier clears the previous one, and so does one that is too long to be sent back.
    pub fn record(&mut self, event_id: Option<String>, retry: Option<u64>) {
        if let Some(event_id) = event_id {
            self.last_event_id =
                Some(event_id).filter(|id| !id.is_empty() && id.len() <= MAX_EVENT_ID);
        }
        if let Some(retry) = retry {
            self.retry = Some(Duration::from_millis(retry).clamp(MIN_RETRY, MAX_RETRY));
        }
    }

    /// Forgets the last event. Returns false if there was none.
    pub fn forget_event(&mut self) -> bool {
        self.last_event_id.take().is_some()
    }

    /// Returns the value of `Last-Event-ID`. `None` if the stream cannot be resumed.
    pub fn last_event_id(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.last_event_id.as_deref()?).ok()
    }

    /// Returns the delay before the `attempt`th resumption since the last event, counted from 1.
    /// The server's `retry` field replaces the delay before the first one, and is the minimum of
    /// the others.
    pub(super) fn delay(&self, attempt: u32) -> Duration {
        match self.retry {
            Some(retry) if attempt <= 1 => retry,
            Some(retry) => retry.max(backoff(attempt)),
            None => backoff(attempt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(event_ids: &[&str]) -> Option<HeaderValue> {
        let mut position = ResumePosition::default();
        for id in event_ids {
            position.record(Some((*id).to_owned()), None);
            position.record(None, None);
        }
        position.last_event_id()
    }

    #[test]
    fn the_last_event_identifier_counts() {
        let longest = "x".repeat(MAX_EVENT_ID);
        let too_long = "x".repeat(MAX_EVENT_ID + 1);
        for (name, event_ids, expected) in [
            ("no event", &[][..], None),
            ("two events", &["e1", "e2"], Some("e2")),
            ("cleared", &["e1", ""], None),
            ("the longest", &[&longest], Some(longest.as_str())),
            ("too long", &["e1", &too_long], None),
            ("no header value", &["e\u{1}"], None),
        ] {
            assert_eq!(
                after(event_ids),
                expected.map(|id| HeaderValue::from_str(id).unwrap()),
                "{name}"
            );
        }
    }

    #[test]
    fn the_servers_delay_is_bounded() {
        for (name, retry, attempt, millis) in [
            ("none", None, 1, 1_000),
            ("none, third attempt", None, 3, 4_000),
            ("first attempt", Some(500), 1, 500),
            ("later attempts", Some(500), 2, 2_000),
            ("long", Some(10_000), 2, 10_000),
            ("too short", Some(0), 1, 20),
            ("too long", Some(u64::MAX), 1, 3_600_000),
        ] {
            let mut position = ResumePosition::default();
            position.record(None, retry);
            assert_eq!(
                position.delay(attempt),
                Duration::from_millis(millis),
                "{name}"
            );
        }
    }
}
