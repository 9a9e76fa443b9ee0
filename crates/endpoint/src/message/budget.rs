//! The memory budget that all held bodies share.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

/// The bytes of one body that count only for all bodies together. Small bodies therefore need no
/// lock.
pub(crate) const SMALL_BODY: usize = 64 << 10;
/// The part of the budget that one principal gets: a quarter.
const PART_OF_A_PRINCIPAL: usize = 4;

/// The maximum size of all held bodies together, in bytes: those of requests, and those of
/// responses from which the endpoint reads revisions.
///
/// A body counts from its first byte until its last reference is dropped. When the budget is
/// exhausted, requests that send more are answered with 503 and `Retry-After`, and no more of such
/// a response is read before it is passed on. Bodies that are already held are not affected.
///
/// The bodies of one principal that are larger than 64 KiB get a quarter of the budget, or one of
/// them all that it needs. Beyond that, its requests are answered with 429 and `Retry-After`. The
/// table of principals has an entry for each one with such a body and no others, so it is bounded
/// by the budget.
#[derive(Debug)]
pub struct BodyBudget {
    available: AtomicUsize,
    per_principal: usize,
    /// The bytes of the larger bodies of each principal.
    principals: Mutex<HashMap<u64, usize>>,
}

impl BodyBudget {
    /// Returns a budget of this many bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        let per_principal = bytes / PART_OF_A_PRINCIPAL;
        Arc::new(Self {
            available: AtomicUsize::new(bytes),
            per_principal,
            principals: Mutex::default(),
        })
    }

    /// Returns the number of bytes that are available now.
    pub fn available(&self) -> usize {
        self.available.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        self.available
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .is_ok()
    }
}

/// A large body as a part of its principal's bytes. It is returned on drop.
#[derive(Debug)]
pub(crate) struct PrincipalShare {
    budget: Arc<BodyBudget>,
    principal: u64,
    bytes: usize,
}

impl PrincipalShare {
    /// Returns a share of nothing, which can [grow](Self::grow).
    pub(crate) fn empty(budget: &Arc<BodyBudget>, principal: u64) -> Self {
        Self {
            budget: Arc::clone(budget),
            principal,
            bytes: 0,
        }
    }

    /// Returns whether nothing was taken yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Takes more of the principal's part. Returns false if other bodies of the principal leave too
    /// little.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let mut principals = self.budget.principals.lock();
        let held = principals.get(&self.principal).copied().unwrap_or_default();
        let is_only = held == self.bytes;
        if !is_only && held + bytes > self.budget.per_principal {
            return false;
        }
        principals.insert(self.principal, held + bytes);
        self.bytes += bytes;
        true
    }
}

impl Drop for PrincipalShare {
    fn drop(&mut self) {
        let mut principals = self.budget.principals.lock();
        let Entry::Occupied(mut entry) = principals.entry(self.principal) else {
            return;
        };
        *entry.get_mut() = entry.get().saturating_sub(self.bytes);
        if *entry.get() == 0 {
            entry.remove();
        }
        if principals.is_empty() {
            principals.shrink_to_fit();
        }
    }
}

/// A part of the budget. It is returned on drop.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

impl BudgetShare {
    /// Returns a share of nothing, which can [grow](Self::grow).
    pub(crate) fn empty(budget: &Arc<BodyBudget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Takes more of the budget. Returns false if not enough is available.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let is_taken = self.budget.take(bytes);
        if is_taken {
            self.bytes += bytes;
        }
        is_taken
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget
            .available
            .fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F4: shares never exceed the budget and return everything that they took.
    #[test]
    fn shares_are_returned() {
        let budget = BodyBudget::new(10);
        let mut one = BudgetShare::empty(&budget);
        let mut other = BudgetShare::empty(&budget);
        assert!(one.grow(6));
        assert!(!other.grow(5));
        assert!(other.grow(4));
        assert!(!one.grow(1));
        assert_eq!(budget.available(), 0);
        drop(one);
        assert_eq!(budget.available(), 6);
        assert!(other.grow(6));
        drop(other);
        assert_eq!(budget.available(), 10);
    }

    /// F4: the larger bodies of a principal share a quarter, one alone gets what it needs, and
    /// nothing is left behind.
    #[test]
    fn a_principal_has_a_quarter() {
        let budget = BodyBudget::new(100);
        let mut only = PrincipalShare::empty(&budget, 1);
        assert!(only.grow(20) && only.grow(20), "it is the only one");
        let mut second = PrincipalShare::empty(&budget, 1);
        assert!(!second.grow(1));
        assert!(PrincipalShare::empty(&budget, 2).grow(25));
        drop(only);
        assert!(second.grow(20));
        let mut third = PrincipalShare::empty(&budget, 1);
        assert!(third.grow(5));
        assert!(!third.grow(1) && !second.grow(1));
        drop((second, third));
        assert_eq!(budget.principals.lock().len(), 0);
    }
}
