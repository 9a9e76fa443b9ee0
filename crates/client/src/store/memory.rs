use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use zeroize::Zeroizing;

use super::{Name, StoreError};

/// Entries in this process.
#[derive(Default)]
pub(super) struct Memory {
    /// In the order of writing.
    entries: Mutex<Vec<(Name, Zeroizing<Vec<u8>>)>>,
    locks: Mutex<HashMap<Name, Arc<AsyncMutex<()>>>>,
}

const MAX_ENTRIES: usize = 1024;

impl Memory {
    pub(super) fn names(&self, prefix: &str) -> Vec<Name> {
        self.entries().iter().map(|(name, _)| name).filter(|name| name.0.starts_with(prefix)).cloned().collect()
    }

    pub(super) fn read(&self, name: &Name) -> Option<Zeroizing<Vec<u8>>> {
        self.entries().iter().find(|(held, _)| held == name).map(|(_, bytes)| bytes.clone())
    }

    pub(super) fn write(&self, name: &Name, bytes: &[u8]) {
        let mut entries = self.entries();
        entries.retain(|(held, _)| held != name);
        if entries.len() == MAX_ENTRIES {
            entries.remove(0);
        }
        entries.push((name.clone(), Zeroizing::new(bytes.to_vec())));
    }

    pub(super) fn remove(&self, name: &Name) {
        self.entries().retain(|(held, _)| held != name);
    }

    pub(super) async fn lock(&self, name: &Name, limit: Duration) -> Result<Box<dyn Send>, StoreError> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            if locks.len() >= MAX_ENTRIES {
                // Whoever holds or waits for a lock has a share of it.
                locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            }
            locks.entry(name.clone()).or_default().clone()
        };
        match timeout(limit, lock.lock_owned()).await {
            Ok(guard) => Ok(Box::new(guard)),
            Err(_) => Err(StoreError::Busy { path: name.0.as_str().into() }),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<(Name, Zeroizing<Vec<u8>>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("entries", &self.entries().len()).finish_non_exhaustive()
    }
}
