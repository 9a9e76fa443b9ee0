//! Replicas in one process, with a real `redis-server`.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]

use std::{
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use portcullis_metadata::{ResourceUri, Scopes, SystemClock};
use portcullis_session::{
    EndReason, EndScope, Owner, ResolveError, ScopeId, SessionJournal as _, SessionKey, SessionSettings, SessionStore,
    SessionTarget,
};
use portcullis_store::{RedisJournal, RedisSettings, RedisState, Retention, Revocations};
use tokio::{task::JoinHandle, time::sleep};

const OWNER: Owner<'_> = Owner::Subject { issuer: "https://issuer", subject: "alice", client: None };

/// A `redis-server` without persistence. It is killed when this is dropped.
struct Redis {
    port: u16,
    process: Child,
}

impl Redis {
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let Ok(process) = Self::run(port) else {
            eprintln!("SKIPPED: redis-server is not installed");
            return None;
        };
        Some(Self { port, process })
    }

    /// Starts `redis-server` and waits until it listens.
    fn run(port: u16) -> std::io::Result<Child> {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Executes a command and returns its output.
    fn command(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let output = Command::new("redis-cli").args(["-p", &port]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn restart_empty(&mut self) {
        self.process = Self::run(self.port).unwrap();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What other replicas have found out about tokens.
#[derive(Default)]
struct ReceivedRevocations {
    dropped: Mutex<Vec<ScopeId>>,
    inactive: Mutex<Vec<[u8; 16]>>,
    connections: Mutex<usize>,
}

impl Revocations for ReceivedRevocations {
    fn drop_issuer(&self, issuer: ScopeId) {
        self.dropped.lock().unwrap().push(issuer);
    }

    fn drop_tokens(&self, tokens: &[[u8; 16]]) {
        self.inactive.lock().unwrap().extend(tokens);
    }

    fn drop_introspected(&self) {
        *self.connections.lock().unwrap() += 1;
    }
}

struct Replica {
    sessions: SessionStore,
    received: Arc<ReceivedRevocations>,
    journal: Arc<RedisJournal>,
    task: JoinHandle<()>,
}

impl Replica {
    fn start(redis: &Redis) -> Self {
        Self::start_as(redis, "default")
    }

    /// Starts a replica with this user of Redis.
    fn start_as(redis: &Redis, user: &str) -> Self {
        let mut settings = SessionSettings::new(SessionKey::new(0, &[7; 32]));
        settings.idle_timeout = Duration::from_secs(600);
        let retention = Retention { lifetime: settings.lifetime, idle_timeout: settings.idle_timeout };
        let redis = RedisSettings::new(format!("redis://{user}@127.0.0.1:{}", redis.port), "test", retention);
        let clock = Arc::new(SystemClock::new());
        let journal = Arc::new(RedisJournal::new(&redis, clock.clone()).unwrap());
        let sessions = SessionStore::with_journal(settings, clock, Arc::new(()), Arc::clone(&journal) as _);
        let received = Arc::<ReceivedRevocations>::default();
        let task = tokio::spawn(journal.run(sessions.clone(), Arc::new(()), received.clone()));
        Self { sessions, received, journal, task }
    }

    async fn reaches(&self, state: RedisState) {
        let started = Instant::now();
        while self.journal.state() != state {
            assert!(started.elapsed() < Duration::from_secs(30), "{:?}", self.journal.state());
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Opens a session and returns its identifier.
    fn open(&self) -> String {
        let reservation = self.sessions.reserve(&target(), OWNER, &Scopes::empty()).unwrap();
        reservation.open(Box::from(*b"backend"), None).unwrap().identifier().to_string()
    }

    fn check(&self, identifier: &str) -> Result<(), ResolveError> {
        self.sessions.resolve(&target(), OWNER, &Scopes::empty(), identifier.as_bytes()).map(drop)
    }

    /// Ends a session and returns whether the end was confirmed.
    async fn end(&self, identifier: &str) -> bool {
        let session = self.sessions.resolve(&target(), OWNER, &Scopes::empty(), identifier.as_bytes()).unwrap();
        let ticket = self.sessions.end(&session, EndReason::Deleted).unwrap();
        drop(session);
        ticket.await.is_ok()
    }

    /// Ends without leaving the others.
    fn crash(self) {
        self.task.abort();
    }
}

fn target() -> SessionTarget {
    ResourceUri::parse("https://mcp.example.com/mcp").unwrap().into()
}

/// E13: an end that is confirmed is known on the other replica. A fresh replica is ready at once, and a crashed one
/// delays a confirmation by at most its lease.
#[tokio::test]
async fn ends_reach_all_replicas() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let mut last = String::new();
    for round in 0..200 {
        last = one.open();
        if round % 2 == 0 {
            assert_eq!(other.check(&last), Ok(()));
        }
        assert!(one.end(&last).await);
        assert_eq!(other.check(&last), Err(ResolveError::Ended));
    }
    assert_eq!(one.journal.replicas(), 2);
    assert_eq!(other.journal.replicas(), 2);

    let fresh = Replica::start(&redis);
    let started = Instant::now();
    fresh.reaches(RedisState::Complete).await;
    assert!(started.elapsed() < RedisJournal::LEASE / 2, "{:?}", started.elapsed());
    assert_eq!(fresh.check(&last), Err(ResolveError::Ended));

    let session = one.open();
    fresh.crash();
    assert!(one.end(&session).await);
    assert_eq!(other.check(&session), Err(ResolveError::Ended));
}

/// E13: Redis is killed and restarted empty: ends hold everywhere, and a fresh replica accepts no ended session.
#[tokio::test]
async fn ends_survive_a_loss_of_redis() {
    let Some(mut redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let kept = one.open();
    let ended = one.open();
    let unconfirmed = one.open();
    assert!(other.end(&ended).await);

    redis.kill();
    one.reaches(RedisState::Unreachable).await;
    other.reaches(RedisState::Unreachable).await;
    assert!(!one.end(&unconfirmed).await);
    assert_eq!(one.check(&kept), Ok(()));
    assert_eq!(one.check(&unconfirmed), Err(ResolveError::Ended));

    let early = Replica::start(&redis);
    assert_eq!(early.check(&kept), Err(ResolveError::NotReady));

    redis.restart_empty();
    let fresh = Replica::start(&redis);
    while fresh.journal.state() != RedisState::Complete {
        for session in [&ended, &unconfirmed] {
            assert!(matches!(fresh.check(session), Err(ResolveError::NotReady | ResolveError::Ended)));
        }
        sleep(Duration::from_millis(5)).await;
    }
    for replica in [&one, &other, &early, &fresh] {
        replica.reaches(RedisState::Complete).await;
        for session in [&ended, &unconfirmed] {
            assert_eq!(replica.check(session), Err(ResolveError::Ended));
        }
        assert_eq!(replica.check(&kept), Ok(()));
    }
    assert!(fresh.end(&kept).await);
    assert_eq!(one.check(&kept), Err(ResolveError::Ended));
    assert!(one.journal.is_complete());
    assert!(one.journal.was_complete());
}

/// E13: a list of ends that Redis has evicted is written again, and no fresh replica takes the empty one for complete.
#[tokio::test]
async fn ends_survive_an_eviction() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    let ended = one.open();
    assert!(one.end(&ended).await);
    assert_eq!(redis.command(&["DEL", "{test}:session-ends"]), "1");
    let fresh = Replica::start(&redis);
    while fresh.journal.state() != RedisState::Complete {
        assert!(matches!(fresh.check(&ended), Err(ResolveError::NotReady | ResolveError::Ended)));
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fresh.check(&ended), Err(ResolveError::Ended));
}

/// E13: scripts that Redis has forgotten are sent to it again.
#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let session = one.open();
    assert_eq!(redis.command(&["SCRIPT", "FLUSH"]), "OK");
    assert!(one.end(&session).await);
    assert_eq!(other.check(&session), Err(ResolveError::Ended));
    assert_eq!(one.journal.state(), RedisState::Complete);
    assert_eq!(one.journal.failure(), None);
}

/// E13: members and messages that cannot be read stop no replica, and the others count.
#[tokio::test]
async fn unreadable_data_is_left_out() {
    let Some(redis) = Redis::start() else { return };
    assert_eq!(redis.command(&["ZADD", "{test}:session-ends", "1900000000000", "another version"]), "1");
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    for message in ["", "?", "Ean end of another version"] {
        assert_eq!(redis.command(&["PUBLISH", "{test}:session-events", message]), "2", "{message}");
    }
    let session = one.open();
    assert!(one.end(&session).await);
    assert_eq!(other.check(&session), Err(ResolveError::Ended));
    assert_eq!(one.journal.failure(), None);
    assert_eq!(other.journal.failure(), None);
}

/// E13: a user with the permissions in `docs/use/replicas.md`, and no others, suffices.
#[tokio::test]
async fn the_documented_permissions_suffice() {
    let Some(redis) = Redis::start() else { return };
    let page = include_str!("../../../docs/use/replicas.md");
    let (_, list) = page.split_once("The user needs").unwrap();
    let (list, _) = list.split_once("Redis holds hashes").unwrap();
    let commands: Vec<_> = list.split('`').skip(1).step_by(2).map(|command| format!("+{command}")).collect();
    let mut arguments = vec!["ACL", "SETUSER", "replica", "on", "nopass", "~{test}:*", "&{test}:*"];
    arguments.extend(commands.iter().map(String::as_str));
    assert_eq!(redis.command(&arguments), "OK", "{commands:?}");

    let replicas = [Replica::start_as(&redis, "replica"), Replica::start_as(&redis, "replica")];
    for replica in &replicas {
        replica.reaches(RedisState::Complete).await;
    }
    let [one, other] = &replicas;
    let session = one.open();
    assert_eq!(other.check(&session), Ok(()));

    one.sessions.record_last_uses();
    one.journal.share_inactive_token([7; 16]);
    while *other.received.inactive.lock().unwrap() != [[7; 16]] {
        sleep(Duration::from_millis(5)).await;
    }
    assert!(other.end(&session).await);
    assert_eq!(one.journal.failure(), None);
    assert_eq!(other.journal.failure(), None);

    one.journal.close();
    while redis.command(&["HLEN", "{test}:replicas"]) != "1" {
        sleep(Duration::from_millis(5)).await;
    }
}

/// E13: a drop that is confirmed was applied once at the other replicas. Without Redis it is not confirmed, and applied when Redis is
/// back without its data. Inactive tokens reach the others, and each new connection is reported.
#[tokio::test]
async fn revocations_reach_all_replicas() {
    let Some(mut redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let [first, second] = ["https://one", "https://two"].map(|issuer| EndScope::Issuer(issuer).id());
    one.journal.drop_tokens(first).await.unwrap();
    assert_eq!(*other.received.dropped.lock().unwrap(), [first]);
    assert!(one.received.dropped.lock().unwrap().is_empty(), "its own one");

    one.journal.share_inactive_token([7; 16]);
    while *other.received.inactive.lock().unwrap() != [[7; 16]] {
        sleep(Duration::from_millis(5)).await;
    }
    redis.kill();
    one.reaches(RedisState::Unreachable).await;
    other.reaches(RedisState::Unreachable).await;
    assert!(one.journal.drop_tokens(second).await.is_err());

    one.journal.share_inactive_token([8; 16]);
    redis.restart_empty();
    for replica in [&one, &other] {
        replica.reaches(RedisState::Complete).await;
    }
    while other.received.dropped.lock().unwrap().len() < 2 {
        sleep(Duration::from_millis(5)).await;
    }
    let fresh = Replica::start(&redis);
    fresh.reaches(RedisState::Complete).await;
    assert_eq!(fresh.received.dropped.lock().unwrap().len(), 2, "both are recorded");
    assert_eq!(*other.received.dropped.lock().unwrap(), [first, second], "each is applied once");
    assert_eq!(*other.received.connections.lock().unwrap(), 2);
}

/// E13: sessions that a replica opens count at the others, while they are not in their tables.
#[tokio::test]
async fn opened_sessions_count_elsewhere() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let first = other.open();
    for _ in 0..SessionSettings::DEFAULT_MAX_PER_OWNER {
        one.open();
    }
    one.sessions.announce_opened();
    let started = Instant::now();
    while other.check(&first).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(10));
        other.open();
        sleep(Duration::from_millis(10)).await;
    }
    assert!(other.sessions.len() < SessionSettings::DEFAULT_MAX_PER_OWNER);
}
