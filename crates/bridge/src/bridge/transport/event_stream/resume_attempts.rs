//! [`ResumePosition`] and [`ResumeAttempts`]: where and when an interrupted stream is resumed.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;

use super::event_reader::EventReader;
use crate::resumption::{MAX_RESUME_AFTER, RESUME_AFTER};

/// The maximum of the server's `retry` field.
const MAX_RETRY: Duration = Duration::from_secs(60 * 60);
/// The minimum of the server's `retry` field. It doubles after each stream without a message, up to the second value.
const MIN_RETRY: Duration = Duration::from_millis(20);
const MAX_MIN_RETRY: Duration = Duration::from_secs(1);

/// Where a stream can be resumed.
#[derive(Clone, Default)]
pub(crate) struct ResumePosition {
    pub(super) last_event: Option<String>,
    /// The server's `retry` field, in milliseconds.
    pub(super) retry: Option<u64>,
}

impl ResumePosition {
    /// Forgets where the stream can be resumed. Returns false if that was unknown.
    pub(crate) fn clear(&mut self) -> bool {
        self.last_event.take().is_some()
    }

    /// Returns the header `Last-Event-ID`.
    pub(crate) fn last_event(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.last_event.as_deref()?).ok()
    }

    /// Returns the delay before the `without_event`th resumption without an event.
    pub(crate) fn wait(&self, without_event: u32) -> Duration {
        let backoff = RESUME_AFTER.saturating_mul(1 << without_event.saturating_sub(1).min(5)).min(MAX_RESUME_AFTER);
        match self.retry.map(|retry| Duration::from_millis(retry).clamp(MIN_RETRY, MAX_RETRY)) {
            Some(retry) if without_event <= 1 => retry,
            Some(retry) => retry.max(backoff),
            None => backoff,
        }
    }
}

/// Counts the resumptions of a stream.
#[derive(Default)]
pub(crate) struct ResumeAttempts {
    /// Since the last event, including events without a message: a server can let its client poll while it works.
    pub(super) without_event: u32,
    /// Since the last message.
    without_message: u32,
}

impl ResumeAttempts {
    /// Resets the counters according to the events received.
    pub(crate) fn record(&mut self, events: &mut EventReader, messages: &[Bytes]) {
        if std::mem::take(&mut events.received_event) {
            self.without_event = 0;
        }
        if !messages.is_empty() {
            self.without_message = 0;
        }
    }

    /// Counts a resumption and returns the delay before it.
    pub(crate) fn next_delay(&mut self, position: &ResumePosition) -> Duration {
        self.without_event = self.without_event.saturating_add(1);
        let least = MIN_RETRY.saturating_mul(1 << self.without_message.min(6)).min(MAX_MIN_RETRY);
        self.without_message = self.without_message.saturating_add(1);
        position.wait(self.without_event).max(least)
    }
}
