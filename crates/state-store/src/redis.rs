//! [`RedisJournal`]: the journal of a session store in Redis or Valkey, for several replicas.

mod acknowledgements;
mod commands;
pub(crate) mod failure;
mod generation;
pub(crate) mod keys;
pub(crate) mod membership;
mod message;
mod publishing;
mod queue;
mod receiver;
mod record;
mod replica;
pub(crate) mod scripts;
mod settings;
mod state;
mod status;

use std::{fmt, sync::Arc, time::Duration};

use portcullis_metadata::Clock;
use portcullis_session::{
    AnnouncedSession, EndTicket, LastUse, ScopeId, SessionEnd, SessionJournal, SessionStore,
};

use self::{
    receiver::Receiver,
    record::{Record, TokenDrop},
    state::{JournalState, PEER_DELAY},
};
pub use self::{
    settings::{RedisSettings, RedisSettingsError},
    status::RedisState,
};
use crate::{LimitCounts, LimitUse, Revocations};

/// Shares the ends of sessions, their last uses and dropped tokens with other replicas through
/// Redis (6.2 or later) or Valkey.
///
/// **Ends.** A ticket completes when the end is stored in Redis and every live replica has
/// acknowledged it. A replica counts as alive for [`LEASE`](Self::LEASE) after its last beat. As
/// long as one of them does not answer, and while the data is younger than
/// [`RETURN_TIME`](Self::RETURN_TIME), the journal publishes the end again. After 6 s, or if Redis
/// is not connected, the ticket fails. The end holds in this process, which writes it as soon as it
/// can.
///
/// **Connection.** After each connect, the replica subscribes, reads the complete list, and writes
/// its own ends again, because Redis may have lost them. It reads the list once more after all
/// other replicas have written theirs, and is then complete. It stays complete as long as it renews
/// its beat in time. Replicas that beat within the return time count for this.
///
/// **Tokens.** A [drop](Self::drop_tokens) of an issuer's cached tokens is recorded as an end is,
/// for as long as an end and 5 min. An [inactive token](Self::share_inactive_token) is published
/// only: after each connect, a replica drops all introspected tokens from its cache, because it may
/// have missed one.
///
/// **Bounds.** At most 262,144 last uses, as many uses of limits and as many announced sessions
/// wait to be sent; further ones are dropped. At most 16,384 ends and drops wait to be sent, and as
/// many to be confirmed; the tickets of further ones fail. Ends leave Redis when the lifetime of
/// their sessions is over, or when another end includes them. Redis keeps at most 2,000,000 last
/// uses.
///
/// Does not support Redis Cluster, where a publisher does not see the subscribers of other nodes,
/// and proxies that move a connection to another server.
pub struct RedisJournal(Arc<JournalState>);

impl RedisJournal {
    /// How long a replica counts as alive after its last beat: 2 s.
    pub const LEASE: Duration = membership::LEASE;
    /// How old the data in Redis must be before an end can be confirmed: 5.5 s.
    pub const RETURN_TIME: Duration = membership::RETURN_TIME;

    /// Returns a journal that is not connected. [`run`](Self::run) connects it.
    ///
    /// # Errors
    /// Fails if the URL or the certificates cannot be used.
    pub fn new(
        settings: &RedisSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RedisSettingsError> {
        JournalState::new(settings, clock).map(|state| Self(Arc::new(state)))
    }

    /// Connects, and exchanges records with other replicas until [`close`](Self::close) is called.
    /// `counts` receives the requests that they have counted for rate limits, and `revocations`
    /// what they have found out about tokens. Run this once, on a runtime with time and I/O.
    pub fn run(
        &self,
        sessions: SessionStore,
        counts: Arc<dyn LimitCounts>,
        revocations: Arc<dyn Revocations>,
    ) -> impl Future<Output = ()> + Send + use<> {
        replica::run(
            Arc::clone(&self.0),
            Receiver {
                sessions,
                counts,
                revocations,
            },
        )
    }

    /// Has every other replica drop the cached tokens of an issuer, named by the id of
    /// [`EndScope::Issuer`](portcullis_session::EndScope::Issuer). This process must drop them
    /// before. The ticket completes as that of an end does: when every live replica has dropped
    /// them. If it fails, they learn of the drop when Redis allows, unless the operating system
    /// returned no random bytes for its id.
    pub fn drop_tokens(&self, issuer: ScopeId) -> EndTicket {
        let mut id = [0; 16];
        if getrandom::fill(&mut id).is_err() {
            return EndTicket::failed();
        }
        let drop = TokenDrop {
            time: self.0.clock.now(),
            id,
            issuer,
        };
        self.0.drops.add(drop);
        self.0.record(Record::Drop(drop))
    }

    /// Tells the other replicas that introspection has found a token inactive. `token` is a hash
    /// that all replicas compute. It waits for a connection. At most 16,384 tokens wait; further
    /// ones are dropped.
    pub fn share_inactive_token(&self, token: [u8; 16]) {
        self.0.queue.add_inactive(token);
        self.0.wake.notify_one();
    }

    /// Sends requests that this replica has counted to the other replicas. They are lost if Redis
    /// is not connected.
    pub fn share_limit_uses(&self, uses: &[LimitUse]) {
        self.0.queue.add_limit_uses(uses);
        self.0.wake.notify_one();
    }

    /// Has [`run`](Self::run) write what waits and leave the other replicas. Ends that are not
    /// confirmed then fail, and so do further ones.
    pub fn close(&self) {
        self.0.queue.close();
        self.0.wake.notify_one();
    }

    /// Returns what the replica knows.
    pub fn state(&self) -> RedisState {
        self.0.status.state(self.0.clock.monotonic())
    }

    /// Returns whether the replica has been complete since its start.
    pub fn was_complete(&self) -> bool {
        self.0.status.was_complete()
    }

    /// Returns the number of live replicas, with this one. 0 if Redis is not connected.
    pub fn replicas(&self) -> usize {
        self.0.status.alive()
    }

    /// Returns why Redis cannot be used. `None` if it is connected, or before the first attempt.
    pub fn failure(&self) -> Option<String> {
        self.0.status.failure().clone()
    }
}

impl SessionJournal for RedisJournal {
    fn record(&self, end: &SessionEnd) -> EndTicket {
        self.0.record(Record::End(*end))
    }

    fn record_last_uses(&self, uses: &[LastUse]) {
        self.0.queue.add_last_uses(uses);
        self.0.wake.notify_one();
    }

    fn announce(&self, sessions: &[AnnouncedSession]) {
        self.0.queue.add_announced(sessions);
        self.0.wake.notify_one();
    }

    fn is_complete(&self) -> bool {
        self.0.status.is_complete(self.0.clock.monotonic())
    }

    fn peer_delay(&self) -> Duration {
        PEER_DELAY
    }
}

impl fmt::Debug for RedisJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisJournal")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::{Secret, SystemClock};

    use super::*;
    use crate::Retention;

    const RETENTION: Retention = Retention {
        lifetime: Duration::from_secs(1000),
        idle_timeout: Duration::from_secs(100),
    };

    /// E13: without a connection, no end is confirmed, and nothing shows the password.
    #[tokio::test]
    async fn nothing_is_confirmed_without_a_connection() {
        let mut settings = RedisSettings::new("redis://user@127.0.0.1:1/2", "test", RETENTION);
        settings.password = Some(Secret::new("hunter2"));
        let journal = RedisJournal::new(&settings, Arc::new(SystemClock::new())).unwrap();
        let end = SessionEnd::Floor {
            scope: None,
            created: portcullis_metadata::UnixTime::from_secs(1),
        };
        assert!(journal.record(&end).await.is_err());
        assert_eq!(journal.state(), RedisState::Unreachable);
        assert!(!journal.is_complete());
        assert!(!format!("{settings:?} {journal:?}").contains("hunter2"));
    }
}
