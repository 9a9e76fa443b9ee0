use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// What all request bodies that are held at once may take together, in bytes of their content.
///
/// A body counts from its first byte until the last reference to it is dropped. When the budget is spent, requests
/// that bring more are answered 503 with `Retry-After`; those that are already held go on.
#[derive(Debug)]
pub struct BodyBudget {
    free: AtomicUsize,
}

impl BodyBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { free: AtomicUsize::new(bytes) })
    }

    /// How many bytes are left at this moment.
    pub fn available(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(bytes)).is_ok()
    }
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

impl Share {
    pub(crate) fn empty(budget: &Arc<BodyBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Takes more of the budget; false when there is not so much left.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F4: shares never take more than there is, and give back all that they took.
    #[test]
    fn shares_are_given_back() {
        let budget = BodyBudget::new(10);
        let mut one = Share::empty(&budget);
        let mut other = Share::empty(&budget);
        assert!(one.grow(6) && !other.grow(5) && other.grow(4) && !one.grow(1));
        assert_eq!(budget.available(), 0);
        drop(one);
        assert_eq!(budget.available(), 6);
        assert!(other.grow(6));
        drop(other);
        assert_eq!(budget.available(), 10);
    }
}
