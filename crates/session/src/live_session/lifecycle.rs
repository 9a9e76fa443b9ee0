//! The life of a session: its uses, its expiry and its end.

use std::time::Duration;

use super::{
    Session,
    use_state::{Change, Status, Usage},
};
use crate::end_reason::EndReason;

/// The idle timeout and the lifetime, in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) idle: u64,
    pub(crate) lifetime: u64,
}

impl Timeouts {
    /// Returns these timeouts, rounded down to milliseconds.
    pub(crate) fn new(idle: Duration, lifetime: Duration) -> Self {
        Self {
            idle: millis(idle),
            lifetime: millis(lifetime),
        }
    }
}

/// The result of an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// The session is in use, and continues.
    InUse,
    /// The session was last used at this time, which is later than expected, or another thread uses
    /// or ends it just now.
    UsedSince(u64),
    /// The eviction has ended the session. The caller must remove it from the store.
    JustEnded,
    /// The session had already ended.
    Ended,
}

impl Session {
    /// Returns whether the session has ended in this process.
    pub fn has_ended(&self) -> bool {
        self.use_state.usage().is_none()
    }

    /// Returns whether a use is in progress.
    pub(crate) fn is_in_use(&self) -> bool {
        self.use_state.usage().is_some_and(|usage| usage.uses > 0)
    }

    /// Returns the time of the last use, in milliseconds of the store's monotonic clock; `None` if
    /// the session has ended.
    pub(crate) fn last_used(&self) -> Option<u64> {
        self.use_state
            .usage()
            .map(|usage| self.opened.saturating_add(usage.last_used))
    }

    /// Begins a use, or ends the session if it has expired. [`end_use`](Self::end_use) ends the
    /// use.
    pub(crate) fn begin_use(&self, now: Duration, timeouts: Timeouts) -> Status {
        let age = self.age(now);
        self.use_state
            .change(|usage| match self.expiry_reason(usage, age, timeouts) {
                Some(reason) => Change::End(reason),
                None => usage.begun(age).map_or(Change::Refuse, Change::Continue),
            })
    }

    /// Ends a use, and the session if it has reached its lifetime.
    pub(crate) fn end_use(&self, now: Duration, timeouts: Timeouts) -> Status {
        let age = self.age(now);
        self.use_state.change(|usage| {
            if self.is_over(age, timeouts) {
                Change::End(EndReason::Lifetime)
            } else {
                Change::Continue(usage.finished(age))
            }
        })
    }

    /// Ends the session if it has expired.
    pub(crate) fn expire(&self, now: Duration, timeouts: Timeouts) -> Status {
        let age = self.age(now);
        self.use_state
            .change(|usage| match self.expiry_reason(usage, age, timeouts) {
                Some(reason) => Change::End(reason),
                None => Change::Continue(usage),
            })
    }

    /// Returns why the session has expired; `None` if it has not, or has already ended.
    pub(crate) fn expired(&self, now: Duration, timeouts: Timeouts) -> Option<EndReason> {
        self.expiry_reason(self.use_state.usage()?, self.age(now), timeouts)
    }

    /// Ends the session, even if it is in use. Returns whether this call ended it. If so, the
    /// caller must remove it from the store.
    pub(crate) fn end(&self) -> bool {
        self.use_state.end()
    }

    /// Ends the session if it is not in use and was not used after `last_used`, in milliseconds of
    /// the store's monotonic clock.
    pub(crate) fn evict(&self, last_used: u64) -> Eviction {
        let Some(usage) = self.use_state.usage() else {
            return Eviction::Ended;
        };
        let used = self.opened.saturating_add(usage.last_used);
        if usage.uses > 0 {
            Eviction::InUse
        } else if used > last_used || !self.use_state.end_if(usage) {
            Eviction::UsedSince(used)
        } else {
            Eviction::JustEnded
        }
    }

    /// Returns why a session that is not in use and was last used at this time has expired; `None`
    /// if it has not.
    pub(crate) fn expiry_reason_if_unused(
        &self,
        last_used: u64,
        now: Duration,
        timeouts: Timeouts,
    ) -> Option<EndReason> {
        let usage = Usage {
            last_used: last_used.saturating_sub(self.opened),
            uses: 0,
        };
        self.expiry_reason(usage, self.age(now), timeouts)
    }

    /// Returns why the session with this usage has expired; `None` if it has not. `age` is that of
    /// [`age`](Self::age).
    fn expiry_reason(&self, usage: Usage, age: u64, timeouts: Timeouts) -> Option<EndReason> {
        if self.is_over(age, timeouts) {
            Some(EndReason::Lifetime)
        } else if usage.uses == 0 && age.saturating_sub(usage.last_used) >= timeouts.idle {
            Some(EndReason::Idle)
        } else {
            None
        }
    }

    /// Returns whether the session has reached its lifetime.
    fn is_over(&self, age: u64, timeouts: Timeouts) -> bool {
        self.age_when_opened.saturating_add(age) >= timeouts.lifetime
    }

    /// Returns the milliseconds since this process opened the session or first saw it.
    fn age(&self, now: Duration) -> u64 {
        millis(now).saturating_sub(self.opened)
    }
}

/// Returns the duration in milliseconds, saturating.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use portcullis_metadata::{Now, ResourceUri, UnixTime};

    use super::*;
    use crate::{
        identifier::{Generation, Record, SessionKey, Version},
        live_session::NewSession,
    };

    const TIMEOUTS: Timeouts = Timeouts {
        idle: 60_000,
        lifetime: 600_000,
    };

    pub(in crate::live_session) fn opened_at(monotonic: Duration) -> Session {
        created_before(monotonic, Duration::ZERO)
    }

    /// Returns a session that this process adopts at this age.
    fn created_before(monotonic: Duration, age: Duration) -> Session {
        let resource = ResourceUri::parse("https://r.example/mcp").unwrap();
        let key = SessionKey::new(1, &[5; 32]);
        let unix = UnixTime::from_secs(1_800_000_000);
        let record = Record {
            session: [7; 16],
            generation: 0,
            created: unix.saturating_sub(age),
            upstream: 0,
            fingerprint: 0,
            version: Version::default(),
            backend_id: Some(Box::default()),
        };
        let first = Generation::new(record.session, 0, 0, 0, 0);
        let target = resource.into();
        let backend_id = Box::default();
        let new = NewSession {
            first,
            record,
            key,
            target,
            encoded_owner: None,
            backend_id,
            is_adopted: false,
        };
        Session::new(new, Now { unix, monotonic })
    }

    /// E9, E12: the lifetime counts from the creation, even in a process that has just started.
    #[test]
    fn the_age_before_counts() {
        let session = created_before(Duration::ZERO, Duration::from_secs(590));
        assert_eq!(
            session.end_use(Duration::from_secs(9), TIMEOUTS),
            Status::Active
        );
        assert_eq!(session.expired(Duration::from_secs(9), TIMEOUTS), None);
        assert_eq!(
            session.expired(Duration::from_secs(10), TIMEOUTS),
            Some(EndReason::Lifetime)
        );
        let new = opened_at(Duration::ZERO);
        assert_eq!(new.expired(Duration::from_secs(599), TIMEOUTS), None);
        assert_eq!(
            new.expired(Duration::from_secs(600), TIMEOUTS),
            Some(EndReason::Lifetime)
        );
    }

    #[test]
    fn one_value_is_attached() {
        let session = opened_at(Duration::ZERO);
        assert_eq!(session.attachment::<u8>(), None);
        assert_eq!(session.attach(|| 1_u8), Some(&1));
        assert_eq!(session.attach(|| 2_u8), Some(&1));
        assert_eq!(session.attachment::<u8>(), Some(&1));
        assert_eq!(session.attachment::<u16>(), None);
        assert_eq!(session.attach(|| 3_u16), None);
    }

    #[test]
    fn times_saturate() {
        assert_eq!(millis(Duration::MAX), u64::MAX);
        assert_eq!(millis(Duration::from_secs(2)), 2000);
        let session = opened_at(Duration::MAX);
        assert_eq!(session.end_use(Duration::MAX, TIMEOUTS), Status::Active);
        assert_eq!(session.last_used(), Some(u64::MAX));
        assert_eq!(session.evict(u64::MAX), Eviction::JustEnded);
    }

    /// E9: a check of the expiry does not count as a use.
    #[test]
    fn a_sweep_is_not_a_use() {
        let session = opened_at(Duration::ZERO);
        assert_eq!(session.end_use(Duration::ZERO, TIMEOUTS), Status::Active);
        assert_eq!(
            session.expire(Duration::from_secs(59), TIMEOUTS),
            Status::Active
        );
        assert!(session.expired(Duration::from_secs(60), TIMEOUTS).is_some());
        assert_eq!(
            session.begin_use(Duration::from_secs(59), TIMEOUTS),
            Status::Active
        );
        assert_eq!(session.expired(Duration::from_secs(60), TIMEOUTS), None);
    }

    /// E9: an eviction ends only a session that is not in use and was not used since it was
    /// selected.
    #[test]
    fn only_unused_sessions_are_evicted() {
        let session = opened_at(Duration::from_secs(1));
        assert_eq!(session.evict(u64::MAX), Eviction::InUse);
        assert_eq!(
            session.end_use(Duration::from_secs(3), TIMEOUTS),
            Status::Active
        );
        assert_eq!(session.last_used(), Some(3000));
        assert_eq!(session.evict(2999), Eviction::UsedSince(3000));
        assert_eq!(session.evict(3000), Eviction::JustEnded);
        assert_eq!(session.evict(3000), Eviction::Ended);
        assert_eq!(session.last_used(), None);
        assert!(!session.end());
        assert_eq!(
            session.begin_use(Duration::from_secs(3), TIMEOUTS),
            Status::Ended
        );
        assert_eq!(
            session.end_use(Duration::from_secs(3), TIMEOUTS),
            Status::Ended
        );
    }
}
