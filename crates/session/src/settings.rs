use std::time::Duration;

use crate::SessionKeys;

/// How a [`SessionStore`](crate::SessionStore) behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSettings {
    /// How long a session may go unused; 30 min by default. Zero ends each session at once.
    pub idle_timeout: Duration,
    /// How long a session may live in all; 24 h by default.
    pub lifetime: Duration,
    /// How many sessions and reservations there may be in all; 100,000 by default.
    pub max_total: usize,
    /// How many sessions one owner may have, over all resources; 100 by default. At it, a new session takes the place of
    /// the owner's least recently used one that is not in use. It does not apply to
    /// [`Owner::Anonymous`](crate::Owner::Anonymous).
    pub max_per_owner: usize,
    /// What identifiers are tagged with. Identifiers of any other key are unknown.
    pub keys: SessionKeys,
}

impl SessionSettings {
    /// The defaults, with these keys.
    pub fn new(keys: impl Into<SessionKeys>) -> Self {
        Self {
            idle_timeout: Duration::from_secs(30 * 60),
            lifetime: Duration::from_secs(24 * 60 * 60),
            max_total: 100_000,
            max_per_owner: 100,
            keys: keys.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionKey;

    /// E9: 30 minutes idle, 24 hours in all, by default.
    #[test]
    fn defaults() {
        let settings = SessionSettings::new(SessionKey::new(0, [0; 16]));
        assert_eq!(settings.idle_timeout, Duration::from_secs(1800));
        assert_eq!(settings.lifetime, Duration::from_secs(86_400));
        assert_eq!((settings.max_total, settings.max_per_owner), (100_000, 100));
    }
}
