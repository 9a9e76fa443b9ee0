use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dashmap::{DashMap, Entry};

use crate::{Owner, StoreFull};

/// Counts what sessions and reservations take, in all and by owner. An owner without any has no entry.
pub(crate) struct Rooms {
    max_total: usize,
    max_per_owner: usize,
    total: AtomicUsize,
    owners: DashMap<Arc<[u8]>, usize>,
}

impl Rooms {
    pub(crate) fn new(max_total: usize, max_per_owner: usize) -> Self {
        Self { max_total, max_per_owner, total: AtomicUsize::new(0), owners: DashMap::new() }
    }

    /// Takes one place for `owner`. The owner's encoding comes back, shared by all its sessions; nothing for
    /// [`Owner::Nobody`].
    pub(crate) fn take(&self, owner: Owner<'_>) -> Result<Option<Arc<[u8]>>, StoreFull> {
        // The owner's limit first, so that an owner at its own limit cannot take a place from others even for a moment.
        let owner = self.take_of_owner(owner)?;
        let taken = self
            .total
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| (taken < self.max_total).then_some(taken + 1));
        if taken.is_err() {
            self.release_of_owner(owner.as_ref());
            return Err(StoreFull::Total);
        }
        Ok(owner)
    }

    /// Gives back what [`take`](Self::take) took.
    pub(crate) fn release(&self, owner: Option<&Arc<[u8]>>) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        self.release_of_owner(owner);
    }

    fn take_of_owner(&self, owner: Owner<'_>) -> Result<Option<Arc<[u8]>>, StoreFull> {
        if owner == Owner::Nobody {
            return Ok(None);
        }
        match self.owners.entry(owner.encode().parts().concat().into()) {
            Entry::Occupied(mut entry) if *entry.get() < self.max_per_owner => {
                *entry.get_mut() += 1;
                Ok(Some(Arc::clone(entry.key())))
            }
            Entry::Vacant(entry) if self.max_per_owner > 0 => {
                let shared = Arc::clone(entry.key());
                entry.insert(1);
                Ok(Some(shared))
            }
            Entry::Occupied(_) | Entry::Vacant(_) => Err(StoreFull::Owner),
        }
    }

    fn release_of_owner(&self, owner: Option<&Arc<[u8]>>) {
        if let Some(owner) = owner {
            self.owners.remove_if_mut(owner, |_, taken| {
                *taken -= 1;
                *taken == 0
            });
        }
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.total.load(Ordering::Acquire), self.owners.len())
    }
}
