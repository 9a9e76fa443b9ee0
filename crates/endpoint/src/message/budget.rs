//! The memory budget that all held bodies share.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The maximum size of all held bodies together, in bytes: those of requests, and those of responses from which the endpoint
/// reads revisions.
///
/// A body counts from its first byte until its last reference is dropped. When the budget is exhausted, requests that
/// send more are answered with 503 and `Retry-After`, and no more of such a response is read before it is passed on. Bodies
/// that are already held are not affected.
#[derive(Debug)]
pub struct BodyBudget {
    available: AtomicUsize,
}

impl BodyBudget {
    /// Returns a budget of this many bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { available: AtomicUsize::new(bytes) })
    }

    /// Returns the number of bytes that are available now.
    pub fn available(&self) -> usize {
        self.available.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        self.available.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
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
        Self { budget: Arc::clone(budget), bytes: 0 }
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
        self.budget.available.fetch_add(self.bytes, Ordering::Relaxed);
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
}
