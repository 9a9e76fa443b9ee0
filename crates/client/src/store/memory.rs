//! [`Memory`]: the store in memory.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use zeroize::Zeroizing;

use super::{Name, StoreError};

/// Entries in this process.
#[derive(Default)]
pub(super) struct Memory {
    /// The least recently written entry is the first.
    entries: Mutex<Vec<(Name, Zeroizing<Vec<u8>>)>>,
    locks: Mutex<HashMap<Name, Arc<AsyncMutex<()>>>>,
}

/// The maximum number of entries. When it is reached, the least recently written one is removed.
const MAX_ENTRIES: usize = 1024;

impl Memory {
    /// The names that begin with a prefix.
    pub(super) fn names(&self, prefix: &str) -> Vec<Name> {
        self.entries
            .lock()
            .iter()
            .map(|(name, _)| name)
            .filter(|name| name.0.starts_with(prefix))
            .cloned()
            .collect()
    }

    /// Reads an entry.
    pub(super) fn read(&self, name: &Name) -> Option<Zeroizing<Vec<u8>>> {
        self.entries
            .lock()
            .iter()
            .find(|(held, _)| held == name)
            .map(|(_, bytes)| bytes.clone())
    }

    /// Whether there are no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.lock().is_empty()
    }

    /// Writes an entry, as the latest.
    pub(super) fn write(&self, name: &Name, bytes: &[u8]) {
        let mut entries = self.entries.lock();
        entries.retain(|(held, _)| held != name);
        if entries.len() == MAX_ENTRIES {
            entries.remove(0);
        }
        entries.push((name.clone(), Zeroizing::new(bytes.to_vec())));
    }

    /// Removes an entry, if it exists.
    pub(super) fn remove(&self, name: &Name) {
        self.entries.lock().retain(|(held, _)| held != name);
    }

    /// Locks an entry in this process. Fails with [`StoreError::Busy`] when the lock is not free in
    /// time.
    pub(super) async fn lock(
        &self,
        name: &Name,
        limit: Duration,
    ) -> Result<Box<dyn Send>, StoreError> {
        let lock = {
            let mut locks = self.locks.lock();
            if locks.len() >= MAX_ENTRIES {
                // The holder and the waiters of a lock share it.
                locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            }
            locks.entry(name.clone()).or_default().clone()
        };
        match timeout(limit, lock.lock_owned()).await {
            Ok(guard) => Ok(Box::new(guard)),
            Err(_) => Err(StoreError::Busy {
                path: name.0.as_str().into(),
            }),
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("entries", &self.entries.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn name(number: usize) -> Name {
        Name(number.to_string())
    }

    /// When the store is full, the least recently written entry is removed. Writing an entry again
    /// does not add one.
    #[test]
    fn the_least_recently_written_entry_is_removed() {
        let memory = Memory::default();
        for number in (0..MAX_ENTRIES).chain([0, MAX_ENTRIES]) {
            memory.write(&name(number), b"entry");
        }
        assert_eq!(memory.names("").len(), MAX_ENTRIES);
        assert!(memory.read(&name(1)).is_none());
        assert!(
            [0, 2, MAX_ENTRIES]
                .iter()
                .all(|number| memory.read(&name(*number)).is_some())
        );
    }

    /// Unused locks are removed, even after more than the maximum were in use; a held lock is kept.
    #[tokio::test(start_paused = true)]
    async fn only_locks_in_use_are_kept() {
        let memory = Memory::default();
        let held = memory.lock(&name(0), LIMIT).await.unwrap();
        let mut at_once = Vec::new();
        for number in 1..=MAX_ENTRIES {
            at_once.push(memory.lock(&name(number), LIMIT).await.unwrap());
        }
        drop(at_once);
        for number in 1..=MAX_ENTRIES {
            drop(
                memory
                    .lock(&name(MAX_ENTRIES + number), LIMIT)
                    .await
                    .unwrap(),
            );
        }
        assert!(memory.locks.lock().len() <= MAX_ENTRIES);
        assert_eq!(
            memory.lock(&name(0), LIMIT).await.err().unwrap().code(),
            "store.busy"
        );

        drop(held);
        assert!(memory.lock(&name(0), LIMIT).await.is_ok());
    }
}
