//! How many connections one upstream may have, over all workers.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::pool::Pool;

/// A bound on the connections to one upstream. Clones share it: give one to all [`HttpUpstream`](crate::HttpUpstream)s
/// of the same upstream, which are one for each worker.
///
/// Connections that wait unused for a next request count as well. At the bound, the unused connections of other workers
/// are closed in favour of a new one; when all are in use, a request that needs a new one is answered 503.
#[derive(Clone)]
pub struct ConnectionLimit(Arc<Shared>);

struct Shared {
    max: usize,
    open: AtomicUsize,
    /// The pools of the instances that share this, of which each holds unused connections of its own.
    pools: Mutex<Vec<Weak<Pool>>>,
}

/// The right to one open connection, given back when it is dropped.
pub(crate) struct ConnectionPermit(Arc<Shared>);

impl ConnectionLimit {
    /// Allows so many connections at once.
    pub fn new(max: usize) -> Self {
        Self(Arc::new(Shared { max, open: AtomicUsize::new(0), pools: Mutex::default() }))
    }

    /// The number of connections that it allows.
    pub fn max(&self) -> usize {
        self.0.max
    }

    /// Lets the unused connections of this pool be closed when others need connections.
    pub(crate) fn register(&self, pool: &Arc<Pool>) {
        let mut pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    /// The right to open a connection. `None` when so many are in use.
    pub(crate) fn acquire(&self) -> Option<ConnectionPermit> {
        self.free_permit().or_else(|| self.permit_of_unused())
    }

    fn free_permit(&self) -> Option<ConnectionPermit> {
        let is_below = |open: usize| (open < self.0.max).then_some(open + 1);
        let counted = self.0.open.fetch_update(Ordering::AcqRel, Ordering::Relaxed, is_below);
        counted.ok().map(|_| ConnectionPermit(Arc::clone(&self.0)))
    }

    /// Closes an unused connection and takes its permit, so that no other request takes it first.
    fn permit_of_unused(&self) -> Option<ConnectionPermit> {
        let pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().filter_map(Weak::upgrade).find_map(|pool| pool.take_oldest()).map(|link| link.into_permit())
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for ConnectionLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLimit").field("max", &self.0.max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L9: no more permits than the limit, and each can be had again.
    #[test]
    fn permits_are_counted() {
        let limit = ConnectionLimit::new(2);
        let (first, second) = (limit.acquire(), limit.clone().acquire());
        assert!(first.is_some() && second.is_some());
        assert!(limit.acquire().is_none());
        drop(first);
        let third = limit.acquire();
        assert!(third.is_some() && limit.acquire().is_none());
    }

    /// L9: threads that race for permits never get more than the limit.
    #[test]
    fn racing_threads_stay_below() {
        let (limit, held, most) = (ConnectionLimit::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(permit) = limit.acquire() {
                            most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            held.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        }
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(limit.0.open.load(Ordering::SeqCst), 0);
    }
}
