//! [`Replica`]: a session store and the journal that shares its ends through Redis.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use portcullis_metadata::{Scopes, SystemClock};
use portcullis_session::{
    EndReason, ResolveError, ScopeId, SessionKey, SessionSettings, SessionStore,
};
use portcullis_state_store::{RedisJournal, RedisSettings, RedisState, Retention, Revocations};
use tokio::task::JoinHandle;

use super::{OWNER, eventually, server::Redis, target};

/// What other replicas have found out about tokens.
#[derive(Default)]
pub(super) struct ReceivedRevocations {
    pub(super) dropped: Mutex<Vec<ScopeId>>,
    pub(super) inactive: Mutex<Vec<[u8; 16]>>,
    pub(super) connections: Mutex<usize>,
}

impl Revocations for ReceivedRevocations {
    fn drop_issuer(&self, issuer: ScopeId) {
        self.dropped.lock().push(issuer);
    }

    fn drop_tokens(&self, tokens: &[[u8; 16]]) {
        self.inactive.lock().extend(tokens);
    }

    fn drop_introspected(&self) {
        *self.connections.lock() += 1;
    }
}

pub(super) struct Replica {
    pub(super) sessions: SessionStore,
    pub(super) received: Arc<ReceivedRevocations>,
    pub(super) journal: Arc<RedisJournal>,
    pub(super) task: JoinHandle<()>,
}

impl Replica {
    pub(super) fn start(redis: &Redis) -> Self {
        Self::start_as(redis, "default")
    }

    pub(super) fn start_as(redis: &Redis, user: &str) -> Self {
        let mut settings = SessionSettings::new(SessionKey::new(0, &[7; 32]));
        settings.idle_timeout = Duration::from_secs(600);
        let retention = Retention {
            lifetime: settings.lifetime,
            idle_timeout: settings.idle_timeout,
        };
        let redis = RedisSettings::new(
            format!("redis://{user}@127.0.0.1:{}", redis.port()),
            "test",
            retention,
        );
        let clock = Arc::new(SystemClock::new());
        let journal = Arc::new(RedisJournal::new(&redis, clock.clone()).unwrap());
        let sessions = SessionStore::builder(settings)
            .clock(clock)
            .journal(Arc::clone(&journal) as _)
            .build();
        let received = Arc::<ReceivedRevocations>::default();
        let task = tokio::spawn(journal.run(sessions.clone(), Arc::new(()), received.clone()));
        Self {
            sessions,
            received,
            journal,
            task,
        }
    }

    pub(super) async fn reaches(&self, state: RedisState) {
        eventually(&format!("the state is {state:?}"), || {
            self.journal.state() == state
        })
        .await;
    }

    /// Opens a session and returns its identifier.
    pub(super) fn open(&self) -> String {
        let reservation = self
            .sessions
            .reserve(&target(), OWNER, &Scopes::empty())
            .unwrap();
        reservation
            .open(Box::from(*b"backend"), None)
            .unwrap()
            .identifier()
            .to_string()
    }

    pub(super) fn check(&self, identifier: &str) -> Result<(), ResolveError> {
        self.sessions
            .resolve(&target(), OWNER, &Scopes::empty(), identifier.as_bytes())
            .map(drop)
    }

    /// Ends a session and returns whether the end was confirmed.
    pub(super) async fn end(&self, identifier: &str) -> bool {
        let session = self
            .sessions
            .resolve(&target(), OWNER, &Scopes::empty(), identifier.as_bytes())
            .unwrap();
        let ticket = self.sessions.end(&session, EndReason::Deleted).unwrap();
        drop(session);
        ticket.await.is_ok()
    }

    /// Ends without leaving the others.
    pub(super) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}
