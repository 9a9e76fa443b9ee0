//! [`RedisJournal`]: the journal of a session store in Redis or Valkey, for several replicas.

mod acknowledgements;
mod failure;
mod membership;
mod message;
mod queue;
mod record;
mod replica;
mod script;

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis_metadata::{Clock, Secret};
use portcullis_session::{AnnouncedSession, EndTicket, LastUse, ScopeId, SessionEnd, SessionJournal, SessionStore};
use redis::{Client, IntoConnectionInfo as _, ProtocolVersion, TlsCertificates};
use tokio::sync::Notify;

use self::{
    acknowledgements::Acknowledgements,
    queue::Queue,
    record::{KnownDrops, Record, TokenDrop},
    script::Names,
};
use crate::{LimitCounts, LimitUse, Retention, Revocations};

/// Where Redis or Valkey is, and what the journal keeps there.
#[derive(Clone)]
#[non_exhaustive]
pub struct RedisSettings {
    /// `redis://` or `rediss://` with the host, and optionally port, user and database.
    pub url: String,
    /// The password. Default: none.
    pub password: Option<Secret>,
    /// The PEM text of the certificates that the server's certificate is checked against. Default: those of the system.
    pub root_certificates: Option<Vec<u8>>,
    /// The first part of all keys and channels. Deployments with different prefixes can share a server.
    pub prefix: String,
    /// How long records matter.
    pub retention: Retention,
}

impl RedisSettings {
    /// Returns settings without a password, with the system's certificates.
    pub fn new(url: impl Into<String>, prefix: impl Into<String>, retention: Retention) -> Self {
        Self { url: url.into(), password: None, root_certificates: None, prefix: prefix.into(), retention }
    }
}

/// Leaves out the address, which can contain a password.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// The address of Redis cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the address or the certificates of Redis cannot be used")]
pub struct RedisSettingsError;

/// Whether a replica knows the ends of the other replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisState {
    /// The replica knows all ends.
    Complete,
    /// Redis is connected, but the replica does not know yet that it has all ends.
    Joining,
    /// Redis is not connected. For a few seconds, [`SessionJournal::is_complete`] remains true.
    Unreachable,
}

/// Shares the ends of sessions, their last uses and dropped tokens with other replicas through Redis (6.2 or later) or Valkey.
///
/// **Ends.** A ticket completes when the end is stored in Redis and every live replica has acknowledged it. A replica counts as
/// alive for [`LEASE`](Self::LEASE) after its last beat. As long as one of them does not answer, and while the data is younger than
/// [`RETURN_TIME`](Self::RETURN_TIME), the journal publishes the end again. After 6 s, or if Redis is not connected, the ticket
/// fails. The end holds in this process, which writes it as soon as it can.
///
/// **Connection.** After each connect, the replica subscribes, reads the complete list, and writes its own ends again, because
/// Redis may have lost them. It reads the list once more after all other replicas have written theirs, and is then complete. It
/// stays complete as long as it renews its beat in time. Replicas that beat within the return time count for this.
///
/// **Tokens.** A [drop](Self::drop_tokens) of an issuer's cached tokens is recorded as an end is, for as long as an end and 5 min.
/// An [inactive token](Self::share_inactive_token) is published only: after each connect, a replica drops all introspected tokens
/// from its cache, because it may have missed one.
///
/// **Bounds.** At most 262,144 last uses and as many uses of limits and announced sessions wait to be written, and 16,384 ends and
/// drops to be confirmed. The tickets of further ones fail, and further uses are dropped. Ends leave Redis when the lifetime of their sessions is over, or when another end includes
/// them. Redis keeps at most 2,000,000 last uses.
///
/// Does not support Redis Cluster, where a publisher does not see the subscribers of other nodes, and proxies that move a
/// connection to another server.
pub struct RedisJournal(Arc<Inner>);

/// What receives the records of other replicas.
#[derive(Clone)]
struct Receiver {
    sessions: SessionStore,
    counts: Arc<dyn LimitCounts>,
    revocations: Arc<dyn Revocations>,
}

struct Inner {
    client: Client,
    /// Host and port.
    address: String,
    /// Why there is no connection.
    failure: Mutex<Option<String>>,
    names: Names,
    retention: Retention,
    clock: Arc<dyn Clock>,
    queue: Queue,
    drops: KnownDrops,
    acknowledgements: Acknowledgements,
    /// There is something in the queue, or the connection may be lost.
    wake: Notify,
    is_connected: AtomicBool,
    /// When the lease of this replica ends, in milliseconds of the monotonic clock; 0 if it is not complete.
    complete_until: AtomicU64,
    was_complete: AtomicBool,
    /// The number of live replicas at the last beat.
    replicas: AtomicUsize,
}

impl RedisJournal {
    /// How long a replica counts as alive after its last beat: 2 s.
    pub const LEASE: Duration = membership::LEASE;
    /// How old the data in Redis must be before an end can be confirmed: 5.5 s.
    pub const RETURN_TIME: Duration = membership::RETURN_TIME;
    /// How late the last uses of other replicas can arrive: they are recorded at least once a minute.
    const PEER_DELAY: Duration = Duration::from_secs(60);

    /// Returns a journal that is not connected. [`run`](Self::run) connects it.
    ///
    /// # Errors
    /// Fails if the URL or the certificates cannot be used.
    pub fn new(settings: &RedisSettings, clock: Arc<dyn Clock>) -> Result<Self, RedisSettingsError> {
        let info = settings.url.as_str().into_connection_info().map_err(|_| RedisSettingsError)?;
        let mut login = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        if let Some(password) = &settings.password {
            login = login.set_password(password.secret());
        }
        let info = info.set_redis_settings(login);
        let address = info.addr().to_string();
        let client = match settings.root_certificates.clone() {
            None => Client::open(info),
            certificates => Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: certificates }),
        };
        Ok(Self(Arc::new(Inner {
            client: client.map_err(|_| RedisSettingsError)?,
            address,
            failure: Mutex::new(None),
            names: Names::new(&settings.prefix),
            retention: settings.retention,
            clock,
            queue: Queue::default(),
            drops: KnownDrops::default(),
            acknowledgements: Acknowledgements::default(),
            wake: Notify::new(),
            is_connected: AtomicBool::new(false),
            complete_until: AtomicU64::new(0),
            was_complete: AtomicBool::new(false),
            replicas: AtomicUsize::new(0),
        })))
    }

    /// Connects, and exchanges records with other replicas until [`close`](Self::close) is called. `counts` receives the requests
    /// that they have counted for rate limits, and `revocations` what they have found out about tokens. Run this once, on a
    /// runtime with time and I/O.
    pub fn run(
        &self,
        sessions: SessionStore,
        counts: Arc<dyn LimitCounts>,
        revocations: Arc<dyn Revocations>,
    ) -> impl Future<Output = ()> + Send + use<> {
        replica::run(Arc::clone(&self.0), Receiver { sessions, counts, revocations })
    }

    /// Has every other replica drop the cached tokens of an issuer, named by the id of
    /// [`EndScope::Issuer`](portcullis_session::EndScope::Issuer). This process must drop them before. The ticket completes as
    /// that of an end does: when every live replica has dropped them. If it fails, they learn of the drop when Redis allows.
    pub fn drop_tokens(&self, issuer: ScopeId) -> EndTicket {
        let mut id = [0; 16];
        if getrandom::fill(&mut id).is_err() {
            return EndTicket::failed();
        }
        let drop = TokenDrop { time: self.0.clock.now(), id, issuer };
        self.0.drops.add(drop);
        self.0.record(Record::Drop(drop))
    }

    /// Tells the other replicas that introspection has found a token inactive. `token` is a hash that all replicas compute. It
    /// waits for a connection. At most 16,384 tokens wait; further ones are dropped.
    pub fn share_inactive_token(&self, token: [u8; 16]) {
        self.0.queue.add_inactive(token);
        self.0.wake.notify_one();
    }

    /// Sends requests that this replica has counted to the other replicas. They are lost if Redis is not connected.
    pub fn share_limit_uses(&self, uses: &[LimitUse]) {
        self.0.queue.add_limit_uses(uses);
        self.0.wake.notify_one();
    }

    /// Has [`run`](Self::run) write what waits and leave the other replicas. Further ends fail.
    pub fn close(&self) {
        self.0.queue.close();
        self.0.wake.notify_one();
    }

    /// Returns what the replica knows.
    pub fn state(&self) -> RedisState {
        match (self.0.is_connected.load(Ordering::Acquire), self.is_complete()) {
            (false, _) => RedisState::Unreachable,
            (true, true) => RedisState::Complete,
            (true, false) => RedisState::Joining,
        }
    }

    /// Returns whether the replica has been complete since its start.
    pub fn was_complete(&self) -> bool {
        self.0.was_complete.load(Ordering::Acquire)
    }

    /// Returns the number of live replicas, with this one. 0 if Redis is not connected.
    pub fn replicas(&self) -> usize {
        if self.0.is_connected.load(Ordering::Acquire) { self.0.replicas.load(Ordering::Relaxed) } else { 0 }
    }

    /// Returns why Redis cannot be used. `None` if it is connected, or before the first attempt.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Inner {
    fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Publishes a record.
    fn record(&self, record: Record) -> EndTicket {
        let ticket = self.queue.add_record(record, self.clock.monotonic());
        self.wake.notify_one();
        ticket
    }

    /// Adds a record of another replica.
    fn import(&self, receiver: &Receiver, record: &Record) {
        match record {
            Record::End(end) => receiver.sessions.import(end),
            Record::Drop(drop) => {
                if self.drops.add(*drop) {
                    receiver.revocations.drop_issuer(drop.issuer);
                }
            }
        }
    }
}

impl SessionJournal for RedisJournal {
    fn record(&self, end: &SessionEnd) -> EndTicket {
        self.0.record(Record::End(*end))
    }

    fn record_last_uses(&self, uses: &[LastUse]) {
        self.0.queue.add_uses(uses);
        self.0.wake.notify_one();
    }

    fn announce(&self, sessions: &[AnnouncedSession]) {
        self.0.queue.add_announced(sessions);
        self.0.wake.notify_one();
    }

    fn is_complete(&self) -> bool {
        let until = Duration::from_millis(self.0.complete_until.load(Ordering::Acquire));
        self.0.clock.monotonic() < until
    }

    fn peer_delay(&self) -> Duration {
        Self::PEER_DELAY
    }
}

impl fmt::Debug for RedisJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisJournal").field("state", &self.state()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::SystemClock;

    use super::*;

    const RETENTION: Retention =
        Retention { lifetime: Duration::from_secs(1000), idle_timeout: Duration::from_secs(100) };

    /// E13: without a connection, no end is confirmed, and nothing shows the password.
    #[tokio::test]
    async fn nothing_is_confirmed_without_a_connection() {
        let mut settings = RedisSettings::new("redis://user@127.0.0.1:1/2", "test", RETENTION);
        settings.password = Some(Secret::new("hunter2"));
        let journal = RedisJournal::new(&settings, Arc::new(SystemClock::new())).unwrap();
        let end = SessionEnd::Floor { scope: None, created: portcullis_metadata::UnixTime::from_secs(1) };
        assert!(journal.record(&end).await.is_err());
        assert_eq!((journal.state(), journal.is_complete()), (RedisState::Unreachable, false));
        assert!(!format!("{settings:?} {journal:?}").contains("hunter2"));
    }

    #[test]
    fn unusable_addresses_are_rejected() {
        for url in ["", "http://127.0.0.1", "redis://", "127.0.0.1:6379"] {
            let settings = RedisSettings::new(url, "test", RETENTION);
            assert!(RedisJournal::new(&settings, Arc::new(SystemClock::new())).is_err(), "{url}");
        }
    }
}
