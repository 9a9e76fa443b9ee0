//! Replicas in one process, with a real `redis-server`.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]

use std::{
    io::{self, ErrorKind},
    net::TcpListener,
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
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The maximum time for which a test waits for what must happen.
const TIMEOUT: Duration = Duration::from_secs(30);
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
        match Self::run(port) {
            Ok(process) => Some(Self { port, process }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("SKIPPED: redis-server is not installed");
                None
            }
            Err(error) => panic!("redis-server cannot be started: {error}"),
        }
    }

    /// Starts `redis-server` and waits until it answers.
    fn run(port: u16) -> io::Result<Child> {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        // Another process may have taken the port: only the answer of this one counts.
        let own_id = format!("process_id:{}\r\n", process.id());
        let started = Instant::now();
        while !run_command(port, &["INFO", "server"]).contains(&own_id) {
            assert!(started.elapsed() < TIMEOUT, "redis-server does not answer on port {port}");
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
        run_command(self.port, arguments).trim().to_owned()
    }

    fn restart_empty(&mut self) {
        self.process = Self::run(self.port).unwrap();
    }
}

/// Executes a command with `redis-cli` and returns its output.
fn run_command(port: u16, arguments: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
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
        eventually(&format!("the state is {state:?}"), || self.journal.state() == state).await;
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

/// Waits until a condition is met, and fails if it is not met in time.
async fn eventually(name: &str, is_met: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_met() {
        assert!(started.elapsed() < TIMEOUT, "not in time: {name}");
        sleep(Duration::from_millis(5)).await;
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
    eventually("the token is received", || *other.received.inactive.lock().unwrap() == [[7; 16]]).await;
    assert!(other.end(&session).await);
    assert_eq!(one.journal.failure(), None);
    assert_eq!(other.journal.failure(), None);

    one.journal.close();
    eventually("the replica has left", || redis.command(&["HLEN", "{test}:replicas"]) == "1").await;
}

/// E13: an end that another replica has not acknowledged when the journal is closed fails, and its ticket does not wait.
#[tokio::test]
async fn a_closed_journal_confirms_nothing() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    eventually("both replicas are alive", || one.journal.replicas() == 2).await;

    let identifier = one.open();
    let session = one.sessions.resolve(&target(), OWNER, &Scopes::empty(), identifier.as_bytes()).unwrap();
    other.crash();
    let ticket = one.sessions.end(&session, EndReason::Deleted).unwrap();
    one.journal.close();
    assert!(timeout(TIMEOUT, ticket).await.unwrap().is_err());
    assert_eq!(one.journal.state(), RedisState::Unreachable);
    assert_eq!(redis.command(&["ZCARD", "{test}:session-ends"]), "2", "the end and the generation");
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
    eventually("the token is received", || *other.received.inactive.lock().unwrap() == [[7; 16]]).await;
    redis.kill();
    one.reaches(RedisState::Unreachable).await;
    other.reaches(RedisState::Unreachable).await;
    assert!(one.journal.drop_tokens(second).await.is_err());

    one.journal.share_inactive_token([8; 16]);
    redis.restart_empty();
    for replica in [&one, &other] {
        replica.reaches(RedisState::Complete).await;
    }
    eventually("the drop is received", || other.received.dropped.lock().unwrap().len() >= 2).await;
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
