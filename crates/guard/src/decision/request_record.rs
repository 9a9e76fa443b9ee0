//! [`RequestRecord`]: what the services behind the guard report about a request.

use std::{sync::OnceLock, time::Duration};

use super::{Operation, Stopwatch, Timing};

/// What the services behind the guard report about a request while they process it, for its
/// [`Decision`](crate::Decision). It belongs to the [`Caller`](crate::Caller::record) of the
/// request, whose clones share it.
#[derive(Debug, Default)]
pub struct RequestRecord {
    operation: OnceLock<Operation>,
    report_only_denial: OnceLock<&'static str>,
    upstream: Stopwatch,
}

impl RequestRecord {
    /// Records what the request asks for. Only the first call has an effect.
    pub fn set_operation(&self, operation: Operation) {
        self.operation.get_or_init(|| operation);
    }

    /// Records the stable code of a denial by a report-only rule. Only the first call has an
    /// effect.
    pub fn set_report_only_denial(&self, code: &'static str) {
        self.report_only_denial.get_or_init(|| code);
    }

    /// Records when the request is passed to an upstream. Only the first call has an effect. `now`
    /// is the monotonic time of the guard's [clock](crate::GuardSettings::clock).
    pub fn upstream_starts(&self, now: Duration) {
        self.upstream.start(now);
    }

    /// Records when the head of the upstream's response is known, by the same clock. The last call
    /// counts.
    pub fn upstream_ends(&self, now: Duration) {
        self.upstream.end(now);
    }

    /// Returns what the request asks for, if it was recorded.
    pub fn operation(&self) -> Option<&Operation> {
        self.operation.get()
    }

    /// Returns the code of the denial that was recorded.
    pub(crate) fn report_only_denial(&self) -> Option<&'static str> {
        self.report_only_denial.get().copied()
    }

    /// Returns the time of the upstream for a request that arrived at `arrival`, if it was
    /// recorded.
    pub(crate) fn upstream(&self, arrival: Duration, now: Duration) -> Option<Timing> {
        self.upstream.timing(arrival, now)
    }
}
