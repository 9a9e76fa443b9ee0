//! The settings of a session store.

use std::time::Duration;

use crate::identifier::SessionKeys;

/// The settings of a [`SessionStore`](crate::SessionStore). [`new`](Self::new) sets the defaults,
/// and each field can be changed afterwards.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSettings {
    /// The maximum time without use. Default: [`DEFAULT_IDLE_TIMEOUT`](Self::DEFAULT_IDLE_TIMEOUT),
    /// 30 min. With zero, a session ends as soon as it is not in use.
    pub idle_timeout: Duration,
    /// The maximum age of a session. Default: [`DEFAULT_LIFETIME`](Self::DEFAULT_LIFETIME), 24 h.
    pub lifetime: Duration,
    /// The maximum number of sessions and reservations together. Default:
    /// [`DEFAULT_MAX_TOTAL`](Self::DEFAULT_MAX_TOTAL), 100,000.
    pub max_total: usize,
    /// The maximum number of sessions of one owner, over all resources. Default:
    /// [`DEFAULT_MAX_PER_OWNER`](Self::DEFAULT_MAX_PER_OWNER), 100. At the limit, a new session
    /// evicts the owner's least recently used session that is not in use. The limit does not apply
    /// to [`Owner::Anonymous`](crate::Owner::Anonymous).
    pub max_per_owner: usize,
    /// The maximum number of sessions of one subject with all its clients, over all resources.
    /// Default: `None`, which stands for ten times `max_per_owner` or a quarter of `max_total`,
    /// whichever is less, and at least `max_per_owner`. At the limit, new sessions are rejected,
    /// except those that evict one of the same owner. An owner without a subject has only
    /// `max_per_owner`.
    pub max_per_subject: Option<usize>,
    /// The keys that seal and open identifiers. An identifier that was sealed with any other key is
    /// unknown.
    pub keys: SessionKeys,
}

impl SessionSettings {
    /// The default maximum time without use.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
    /// The default maximum age of a session.
    pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
    /// The default maximum number of sessions.
    pub const DEFAULT_MAX_TOTAL: usize = 100_000;
    /// The default maximum number of sessions of one owner.
    pub const DEFAULT_MAX_PER_OWNER: usize = 100;

    /// Returns the maximum number of sessions of one subject:
    /// [`max_per_subject`](Self::max_per_subject), or its default.
    pub(crate) fn subject_limit(&self) -> usize {
        let default = || {
            self.max_per_owner
                .saturating_mul(10)
                .min(self.max_total / 4)
                .max(self.max_per_owner)
        };
        self.max_per_subject.unwrap_or_else(default)
    }

    /// Returns the default settings with these keys.
    pub fn new(keys: impl Into<SessionKeys>) -> Self {
        Self {
            idle_timeout: Self::DEFAULT_IDLE_TIMEOUT,
            lifetime: Self::DEFAULT_LIFETIME,
            max_total: Self::DEFAULT_MAX_TOTAL,
            max_per_owner: Self::DEFAULT_MAX_PER_OWNER,
            max_per_subject: None,
            keys: keys.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionKey;

    /// E9: the defaults are 30 minutes without use and 24 hours in total.
    #[test]
    fn defaults() {
        let settings = SessionSettings::new(SessionKey::new(0, &[0; 32]));
        assert_eq!(settings.idle_timeout, Duration::from_secs(1800));
        assert_eq!(settings.lifetime, Duration::from_secs(86_400));
        assert_eq!(settings.max_total, 100_000);
        assert_eq!(settings.max_per_owner, 100);
        assert_eq!(settings.subject_limit(), 1000);
    }
}
