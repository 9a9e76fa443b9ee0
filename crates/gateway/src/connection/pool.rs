//! [`Pool`]: the idle connections of one worker.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_metadata::Clock;

use super::{
    limit::{ConnectionLimit, ConnectionPermit, IdleConnections},
    stream::Stream,
};

/// An HTTP/1.1 connection to the upstream.
pub(crate) type Connection = portcullis_http1::Connection<Stream>;

/// The idle connections of one worker, at most `max_idle`.
///
/// No task watches them. A connection that the upstream has closed is detected when it is used.
pub(crate) struct Pool {
    /// The connection that has been idle longest is first.
    idle: Mutex<VecDeque<IdleConnection>>,
    max_idle: usize,
    idle_timeout: Duration,
    clock: Arc<dyn Clock>,
}

/// A connection that no request uses.
struct IdleConnection {
    connection: Connection,
    /// The monotonic time from which it has been idle.
    since: Duration,
}

impl Pool {
    /// Creates an empty pool, whose connections `limit` can close.
    pub(crate) fn new(
        max_idle: usize,
        idle_timeout: Duration,
        clock: Arc<dyn Clock>,
        limit: &ConnectionLimit,
    ) -> Arc<Self> {
        let pool = Arc::new(Self {
            idle: Mutex::default(),
            max_idle,
            idle_timeout,
            clock,
        });
        let weak: Weak<Self> = Arc::downgrade(&pool);
        limit.register(weak);
        pool
    }

    /// Takes the connection that was used last. The upstream may have closed it. `now` is the
    /// monotonic time.
    pub(crate) fn take(&self, now: Duration) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let newest = idle.pop_back()?;
        if self.is_expired(&newest, now) {
            // All others have been idle longer.
            idle.clear();
            return None;
        }
        Some(newest.connection)
    }

    /// Adds a connection if it is reusable, and closes it otherwise.
    pub(crate) fn put(&self, mut connection: Connection) {
        if self.max_idle == 0 || !connection.is_reusable() {
            return;
        }
        connection.shrink();
        let now = self.clock.monotonic();
        let mut idle = self.idle.lock();
        while idle
            .front()
            .is_some_and(|oldest| idle.len() >= self.max_idle || self.is_expired(oldest, now))
        {
            idle.pop_front();
        }
        idle.push_back(IdleConnection {
            connection,
            since: now,
        });
    }

    /// Returns whether a connection has been idle for the timeout.
    fn is_expired(&self, idle: &IdleConnection, now: Duration) -> bool {
        now.saturating_sub(idle.since) >= self.idle_timeout
    }
}

impl IdleConnections for Pool {
    fn close_oldest(&self) -> Option<ConnectionPermit> {
        let mut idle = self.idle.lock();
        idle.pop_front()
            .map(|oldest| oldest.connection.into_stream().into_permit())
    }
}
