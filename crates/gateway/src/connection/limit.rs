//! [`ConnectionLimit`]: the limit of open connections to one upstream.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

/// The maximum number of open connections to one upstream, over all workers. Clones share the
/// limit: give a clone to each [`HttpUpstream`](crate::HttpUpstream) of the same upstream.
///
/// Idle connections count. At the limit, a request that needs a new connection closes an idle
/// connection of any of these instances. If there is none, the request gets 503.
///
/// ```
/// use portcullis_gateway::{ConnectionLimit, HttpUpstreamSettings, UpstreamAddress};
///
/// let mut settings = HttpUpstreamSettings::new(UpstreamAddress::Tcp("http://127.0.0.1:8000/mcp".parse()?));
/// settings.connection_limit = ConnectionLimit::new(200);
///
/// // Upstreams that are created from clones of these settings share the limit.
/// assert_eq!((settings.clone().connection_limit.max(), settings.connection_limit.open()), (200, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ConnectionLimit(Arc<OpenConnections>);

/// The state that the clones of a limit share.
struct OpenConnections {
    max: AtomicUsize,
    /// The number of permits.
    count: AtomicUsize,
    /// The idle connections of the instances that share this limit.
    pools: Mutex<Vec<Weak<dyn IdleConnections>>>,
}

/// Idle connections that can be closed to make capacity for a new one.
pub(super) trait IdleConnections: Send + Sync {
    /// Closes the connection that has been idle longest, if any, and returns its permit.
    fn close_oldest(&self) -> Option<ConnectionPermit>;
}

/// The permit for one open connection. Dropping it makes capacity for another one.
#[must_use = "the connection counts only as long as its permit exists"]
pub(crate) struct ConnectionPermit(Arc<OpenConnections>);

impl ConnectionLimit {
    /// Returns a limit of `max` open connections.
    pub fn new(max: usize) -> Self {
        let max = AtomicUsize::new(max);
        Self(Arc::new(OpenConnections {
            max,
            count: AtomicUsize::new(0),
            pools: Mutex::default(),
        }))
    }

    /// Returns the maximum number of open connections.
    pub fn max(&self) -> usize {
        self.0.max.load(Ordering::Relaxed)
    }

    /// Changes the maximum, for all clones. Open connections above it are not closed; they count
    /// until they close.
    pub fn set_max(&self, max: usize) {
        self.0.max.store(max, Ordering::Relaxed);
    }

    /// Returns the number of open connections, including idle ones.
    pub fn open(&self) -> usize {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Adds idle connections that may be closed at the limit.
    pub(super) fn register(&self, pool: Weak<dyn IdleConnections>) {
        let mut pools = self.0.pools.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(pool);
    }

    /// Returns a permit for a new connection, or `None` if all connections are in use.
    pub(crate) fn acquire(&self) -> Option<ConnectionPermit> {
        self.acquire_new().or_else(|| self.acquire_idle())
    }

    /// Issues a new permit, unless the limit is reached.
    fn acquire_new(&self) -> Option<ConnectionPermit> {
        let increment = |count: usize| (count < self.max()).then_some(count + 1);
        let incremented = self
            .0
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, increment);
        incremented
            .ok()
            .map(|_| ConnectionPermit(Arc::clone(&self.0)))
    }

    /// Closes an idle connection and takes over its permit. Because the permit is handed over and
    /// not returned, the count does not change, and a concurrent request cannot acquire the
    /// capacity first. While more connections are open than the maximum, which was lowered, the
    /// permit is returned, and the next idle connection is closed.
    fn acquire_idle(&self) -> Option<ConnectionPermit> {
        let pools = self.0.pools.lock();
        let close = || {
            pools
                .iter()
                .filter_map(Weak::upgrade)
                .find_map(|pool| pool.close_oldest())
        };
        std::iter::from_fn(close).find(|_| self.open() <= self.max())
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for ConnectionLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLimit")
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L9: there are never more permits than the limit, and a returned permit can be acquired
    /// again.
    #[test]
    fn permits_are_counted() {
        let limit = ConnectionLimit::new(2);
        let first = limit.acquire();
        let second = limit.clone().acquire();
        assert!(first.is_some());
        assert!(second.is_some());
        assert!(limit.acquire().is_none());
        assert_eq!(limit.open(), 2);
        drop(first);
        assert_eq!(limit.open(), 1);
        let third = limit.acquire();
        assert!(third.is_some());
        assert!(limit.acquire().is_none());
    }

    /// L9: a lowered maximum is reached as connections close, and idle connections are closed for
    /// it.
    #[test]
    fn the_maximum_can_be_changed() {
        struct Idle(Mutex<Vec<ConnectionPermit>>);
        impl IdleConnections for Idle {
            fn close_oldest(&self) -> Option<ConnectionPermit> {
                self.0.lock().pop()
            }
        }
        let limit = ConnectionLimit::new(4);
        let idle: Vec<_> = (0..3).map_while(|_| limit.acquire()).collect();
        let used = limit.acquire();
        let idle: Arc<dyn IdleConnections> = Arc::new(Idle(Mutex::new(idle)));
        limit.register(Arc::downgrade(&idle));
        limit.clone().set_max(2);
        assert_eq!(
            (limit.max(), limit.open()),
            (2, 4),
            "open connections are not closed"
        );
        let next = limit.acquire();
        assert!(
            next.is_some() && limit.open() == 2,
            "two idle connections are closed, and one is handed over"
        );
        assert!(limit.acquire().is_none());
        limit.set_max(3);
        assert!(limit.acquire().is_some());
        drop((used, next));
    }

    /// L9: concurrent threads never hold more permits than the limit.
    #[test]
    fn concurrent_threads_stay_below_the_limit() {
        let limit = ConnectionLimit::new(3);
        let held = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(permit) = limit.acquire() {
                            most.fetch_max(
                                held.fetch_add(1, Ordering::SeqCst) + 1,
                                Ordering::SeqCst,
                            );
                            held.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        }
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(limit.0.count.load(Ordering::SeqCst), 0);
    }
}
