use std::sync::Arc;

use crate::{KeyError, SessionKey};

/// More keys than any rotation needs.
const MAX_KEYS: usize = 16;

/// The keys of a deployment: the first one tags new identifiers, all of them are known by their tags. Cheap to clone.
///
/// To rotate without losing anything, first add the new key behind the present one everywhere, then put it first, and
/// take the old one away when the sessions of its time have ended. Identifiers of a key that is not here are unknown.
#[derive(Clone, Debug)]
pub struct SessionKeys {
    current: SessionKey,
    former: Arc<[SessionKey]>,
}

impl SessionKeys {
    /// These keys, the one for new identifiers first. Two may have one epoch.
    ///
    /// # Errors
    /// When there is none, one is there twice, or there are more than 16.
    pub fn new(keys: impl IntoIterator<Item = SessionKey>) -> Result<Self, KeyError> {
        let mut keys = keys.into_iter();
        let current = keys.next().ok_or(KeyError::None)?;
        let former: Vec<SessionKey> = keys.take(MAX_KEYS).collect();
        if former.len() == MAX_KEYS {
            return Err(KeyError::TooMany);
        }
        for (position, key) in former.iter().enumerate() {
            // Under two epochs one key would give each identifier two forms.
            if key.same_secret(&current) || former[..position].iter().any(|earlier| key.same_secret(earlier)) {
                return Err(KeyError::Repeated);
            }
        }
        Ok(Self { current, former: former.into() })
    }

    /// The key of new identifiers.
    pub(crate) fn current(&self) -> &SessionKey {
        &self.current
    }

    /// The keys that an identifier of this epoch may have been tagged with.
    pub(crate) fn of_epoch(&self, epoch: u8) -> impl Iterator<Item = &SessionKey> {
        [&self.current].into_iter().chain(&*self.former).filter(move |key| key.epoch() == epoch)
    }
}

impl From<SessionKey> for SessionKeys {
    fn from(key: SessionKey) -> Self {
        Self { current: key, former: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> SessionKey {
        SessionKey::new(number, [number; 16])
    }

    /// E10: a list of keys is neither empty nor endless, and has each key once, whatever epoch it is given.
    #[test]
    fn unusable_lists_are_refused() {
        assert_eq!(SessionKeys::new([]).unwrap_err(), KeyError::None);
        assert_eq!(SessionKeys::new([key(1), key(1)]).unwrap_err(), KeyError::Repeated);
        assert_eq!(SessionKeys::new([key(1), key(2), key(2)]).unwrap_err(), KeyError::Repeated);
        assert_eq!(SessionKeys::new([key(1), SessionKey::new(2, [1; 16])]).unwrap_err(), KeyError::Repeated);
        assert!(SessionKeys::new((0..16).map(key)).is_ok());
        assert_eq!(SessionKeys::new((0..17).map(key)).unwrap_err(), KeyError::TooMany);
        assert_eq!(SessionKeys::new((0..255).map(key)).unwrap_err(), KeyError::TooMany);
    }

    #[test]
    fn keys_are_found_by_epoch() {
        let keys = SessionKeys::new([key(3), SessionKey::new(4, [9; 16]), SessionKey::new(3, [8; 16])]).unwrap();
        assert_eq!(keys.current().epoch(), 3);
        assert_eq!((keys.of_epoch(3).count(), keys.of_epoch(4).count(), keys.of_epoch(5).count()), (2, 1, 0));
    }
}
