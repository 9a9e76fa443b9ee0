use std::sync::Arc;

use super::key::SessionKey;
use crate::error::KeyError;

/// The keys of a deployment. The first key seals new identifiers, and all keys open identifiers.
/// Clones share the list.
///
/// To rotate keys without losing sessions, add the new key after the current one in all replicas.
/// Then move it to the front. Remove the old key when its sessions have ended: identifiers of keys
/// that are not listed are unknown.
#[derive(Clone, Debug)]
pub struct SessionKeys {
    current: SessionKey,
    others: Arc<[SessionKey]>,
}

impl SessionKeys {
    /// The maximum number of keys.
    pub const MAX: usize = 16;

    /// Returns a list of keys. The first key seals new identifiers. Several keys may have the same
    /// epoch.
    ///
    /// # Errors
    /// Fails if the list is empty, has a key twice, or has more than [`MAX`](Self::MAX) keys.
    pub fn new(keys: impl IntoIterator<Item = SessionKey>) -> Result<Self, KeyError> {
        let mut keys = keys.into_iter();
        let current = keys.next().ok_or(KeyError::None)?;
        let others: Vec<SessionKey> = keys.take(Self::MAX).collect();
        if others.len() == Self::MAX {
            return Err(KeyError::TooMany);
        }
        for (position, key) in others.iter().enumerate() {
            // With two epochs for one key, one record could have two identifiers.
            if key.same_secret(&current)
                || others[..position]
                    .iter()
                    .any(|earlier| key.same_secret(earlier))
            {
                return Err(KeyError::Repeated);
            }
        }
        Ok(Self {
            current,
            others: others.into(),
        })
    }

    /// Returns the key for the hashes under which replicas count requests. It is derived from the
    /// first key.
    pub fn limit_key(&self) -> [u8; 16] {
        self.current.limits()
    }

    /// Returns the key that seals new identifiers.
    pub(crate) fn current(&self) -> &SessionKey {
        &self.current
    }

    /// Returns whether the list has this key with this epoch.
    pub(crate) fn contains(&self, key: &SessionKey) -> bool {
        self.of_epoch(key.epoch())
            .any(|listed| listed.same_secret(key))
    }

    pub(crate) fn of_epoch(&self, epoch: u8) -> impl Iterator<Item = &SessionKey> {
        [&self.current]
            .into_iter()
            .chain(&*self.others)
            .filter(move |key| key.epoch() == epoch)
    }
}

impl From<SessionKey> for SessionKeys {
    fn from(key: SessionKey) -> Self {
        Self {
            current: key,
            others: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> SessionKey {
        SessionKey::new(number, &[number; 32])
    }

    /// E10: a list of keys is not empty, is bounded, and has each key once, with any epoch.
    #[test]
    fn unusable_lists_are_rejected() {
        assert_eq!(SessionKeys::new([]).unwrap_err(), KeyError::None);
        assert_eq!(
            SessionKeys::new([key(1), key(1)]).unwrap_err(),
            KeyError::Repeated
        );
        assert_eq!(
            SessionKeys::new([key(1), key(2), key(2)]).unwrap_err(),
            KeyError::Repeated
        );
        assert_eq!(
            SessionKeys::new([key(1), SessionKey::new(2, &[1; 32])]).unwrap_err(),
            KeyError::Repeated
        );
        assert!(SessionKeys::new((0..16).map(key)).is_ok());
        assert_eq!(
            SessionKeys::new((0..17).map(key)).unwrap_err(),
            KeyError::TooMany
        );
        assert_eq!(
            SessionKeys::new((0..255).map(key)).unwrap_err(),
            KeyError::TooMany
        );
    }

    #[test]
    fn keys_are_found_by_epoch() {
        let keys = SessionKeys::new([
            key(3),
            SessionKey::new(4, &[9; 32]),
            SessionKey::new(3, &[8; 32]),
        ])
        .unwrap();
        assert_eq!(keys.current().epoch(), 3);
        assert_eq!(keys.of_epoch(3).count(), 2);
        assert_eq!(keys.of_epoch(4).count(), 1);
        assert_eq!(keys.of_epoch(5).count(), 0);
    }
}
