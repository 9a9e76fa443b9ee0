//! The limit of open connections to one upstream.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The maximum number of open connections to one upstream, over all workers. Clones share the limit: give a clone to each
/// [`HttpUpstream`](crate::HttpUpstream) of the same upstream.
///
/// Idle connections count. At the limit, a request that needs a new connection closes an idle connection of any of these
/// instances. If there is none, the request gets 503.
#[derive(Clone)]
pub struct ConnectionLimit(Arc<Counter>);

struct Counter {
    max: usize,
    open: AtomicUsize,
    /// The idle connections of the instances that share this limit.
    pools: Mutex<Vec<Weak<dyn IdleConnections>>>,
}

/// Idle connections that can be closed to make capacity for a new one.
pub(super) trait IdleConnections: Send + Sync {
    /// Closes the connection that has been idle longest, if any, and returns its permit.
    fn close_oldest(&self) -> Option<ConnectionPermit>;
}

/// The permit for one open connection. Dropping it returns it.
pub(crate) struct ConnectionPermit(Arc<Counter>);

impl ConnectionLimit {
    /// A limit of `max` open connections.
    pub fn new(max: usize) -> Self {
        Self(Arc::new(Counter { max, open: AtomicUsize::new(0), pools: Mutex::default() }))
    }

    /// The maximum number of open connections.
    pub fn max(&self) -> usize {
        self.0.max
    }

    /// The number of open connections, idle ones included.
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Adds idle connections that may be closed at the limit.
    pub(super) fn register(&self, pool: Weak<dyn IdleConnections>) {
        let mut pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(pool);
    }

    /// A permit for a new connection, or `None` if all connections are in use.
    pub(crate) fn acquire(&self) -> Option<ConnectionPermit> {
        self.acquire_free().or_else(|| self.acquire_idle())
    }

    fn acquire_free(&self) -> Option<ConnectionPermit> {
        let is_below = |open: usize| (open < self.0.max).then_some(open + 1);
        let counted = self.0.open.fetch_update(Ordering::AcqRel, Ordering::Relaxed, is_below);
        counted.ok().map(|_| ConnectionPermit(Arc::clone(&self.0)))
    }

    /// Takes the permit of an idle connection. The permit is never free in between, so that no other request can take it.
    fn acquire_idle(&self) -> Option<ConnectionPermit> {
        let pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().filter_map(Weak::upgrade).find_map(|pool| pool.close_oldest())
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

    /// L9: there are never more permits than the limit, and a returned permit can be acquired again.
    #[test]
    fn permits_are_counted() {
        let limit = ConnectionLimit::new(2);
        let (first, second) = (limit.acquire(), limit.clone().acquire());
        assert!(first.is_some() && second.is_some());
        assert!(limit.acquire().is_none());
        assert_eq!(limit.open(), 2);
        drop(first);
        assert_eq!(limit.open(), 1);
        let third = limit.acquire();
        assert!(third.is_some() && limit.acquire().is_none());
    }

    /// L9: concurrent threads never hold more permits than the limit.
    #[test]
    fn concurrent_threads_stay_below_the_limit() {
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
