use std::{sync::Arc, time::Duration};

use anyhow::bail;
use portcullis_config::plan::ReplicasPlan;
use portcullis_metadata::Clock;
use portcullis_session::{
    AnnouncedSession, EndTicket, LastUse, ScopeId, SessionEnd, SessionJournal, SessionStore,
};
use portcullis_state_store::{
    FileJournal, LimitCounts, LimitUse, RedisJournal, RedisState, Revocations,
    records::{RecordError, RecordStore, RedisRecords},
};
use portcullis_verifier::TokenId;
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::health::ReplicaReadiness;

/// How long a start waits for the ends of the other replicas if Redis is connected.
const JOIN_TIMEOUT: Duration = RedisJournal::RETURN_TIME.saturating_add(Duration::from_secs(2));
/// How long a start waits for Redis.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the state of the connection is checked while a start waits.
const JOIN_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The connection to other replicas through Redis. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    journal: Arc<RedisJournal>,
    /// Whether all requests are rejected while Redis cannot be used.
    strict: bool,
}

/// Opens the records that the brokers of all replicas share. If Redis cannot be reached now, the
/// records are connected later, as the sessions are: until then, everything with them fails. Waits
/// at most 2 s. Fails if Redis can lose records.
pub(crate) async fn open_records(
    plan: &ReplicasPlan,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn RecordStore>> {
    let mut records = RedisRecords::new(&plan.redis, clock)?;
    if plan.assumes_durable {
        records = records.assume_durable();
    }
    match records.connect().await {
        Ok(()) => {}
        Err(RecordError::Redis(_)) => tracing::warn!(
            "the broker starts without its records in redis; until redis can be used, it answers with 503, and none of its tokens is accepted"
        ),
        Err(error @ RecordError::RedisConfig) => bail!(
            "shared.redis: {error}; the setting is shared.assume_durable = true [{}]",
            error.code()
        ),
        Err(error) => bail!("shared.redis: {error} [{}]", error.code()),
    }
    Ok(Arc::new(records))
}

/// Records in Redis and in the state directory.
struct BothJournals {
    redis: Arc<RedisJournal>,
    file: Option<Arc<FileJournal>>,
}

impl Replicas {
    /// Returns a connection that is not established. Fails if the address of Redis cannot be used.
    pub(crate) fn new(plan: &ReplicasPlan, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        Ok(Self {
            journal: Arc::new(RedisJournal::new(&plan.redis, clock)?),
            strict: plan.strict,
        })
    }

    /// Returns the journal for a session store, which also records in the state directory.
    pub(crate) fn journal(&self, file: Option<Arc<FileJournal>>) -> Arc<dyn SessionJournal> {
        Arc::new(BothJournals {
            redis: Arc::clone(&self.journal),
            file,
        })
    }

    /// Connects to Redis. `counts` receives the requests that other replicas have counted, and
    /// `revocations` what they have found out about tokens.
    pub(crate) fn spawn(
        &self,
        sessions: SessionStore,
        counts: Arc<dyn LimitCounts>,
        revocations: Arc<dyn Revocations>,
    ) -> JoinHandle<()> {
        tokio::spawn(self.journal.run(sessions, counts, revocations))
    }

    /// Has the other replicas drop the cached tokens of an issuer. The ticket completes when they
    /// have.
    pub(crate) fn drop_tokens(&self, issuer: ScopeId) -> EndTicket {
        self.journal.drop_tokens(issuer)
    }

    /// Tells the other replicas that a token is inactive.
    pub(crate) fn share_inactive_token(&self, token: TokenId) {
        self.journal.share_inactive_token(token.0);
    }

    /// Sends requests that this replica has counted to the others.
    pub(crate) fn share_limit_uses(&self, uses: &[LimitUse]) {
        self.journal.share_limit_uses(uses);
    }

    /// Waits until the ends of the other replicas are known, so that the first requests find them.
    /// Waits at most [`CONNECT_TIMEOUT`] for Redis, and at most [`JOIN_TIMEOUT`] for the ends.
    pub(crate) async fn joined(&self) {
        let mut started = Instant::now();
        let mut is_joining = false;
        loop {
            let state = self.journal.state();
            if state == RedisState::Complete {
                return;
            }
            // Connected: the second limit begins, once.
            if state == RedisState::Joining && !is_joining {
                is_joining = true;
                started = Instant::now();
                tracing::info!(
                    "waiting for the ends of sessions at other replicas, at most {} s",
                    JOIN_TIMEOUT.as_secs()
                );
            }
            let limit = if state == RedisState::Joining {
                JOIN_TIMEOUT
            } else {
                CONNECT_TIMEOUT
            };
            if started.elapsed() >= limit {
                break;
            }
            sleep(JOIN_CHECK_INTERVAL).await;
        }
        tracing::warn!(
            "the ends of sessions at other replicas are not known yet; their sessions get 503 until they are"
        );
    }

    /// Writes what waits and leaves the other replicas, within `limit`.
    pub(crate) async fn finish(&self, task: JoinHandle<()>, limit: Duration) {
        self.journal.close();
        let abort = task.abort_handle();
        if timeout(limit, task).await.is_err() {
            abort.abort();
            tracing::warn!("the last uses of sessions were not written to redis in time");
        }
    }

    /// Returns whether all requests are rejected now.
    pub(crate) fn rejects_all(&self) -> bool {
        self.strict && self.journal.state() != RedisState::Complete
    }

    /// Returns whether clients should be sent to this replica, and what the report of `/readyz` has
    /// about Redis. A replica that was ready remains so while Redis is unreachable, because it
    /// continues its sessions.
    pub(crate) fn readiness(&self) -> ReplicaReadiness {
        let state = match self.journal.state() {
            RedisState::Complete => "complete",
            RedisState::Joining => "joining",
            _ => "unreachable",
        };
        let is_ready = self.journal.was_complete() && !self.rejects_all();
        let replicas = self.journal.replicas();
        let reason = self.journal.failure();
        let report = json!({ "redis": state, "reason": reason, "replicas": replicas, "strict": self.strict });
        ReplicaReadiness { is_ready, report }
    }
}

/// The file keeps what Redis may lose. A confirmation means that the other replicas know the end.
impl SessionJournal for BothJournals {
    fn record(&self, end: &SessionEnd) -> EndTicket {
        if let Some(file) = &self.file {
            drop(file.record(end));
        }
        self.redis.record(end)
    }

    fn record_last_uses(&self, uses: &[LastUse]) {
        if let Some(file) = &self.file {
            file.record_last_uses(uses);
        }
        self.redis.record_last_uses(uses);
    }

    fn announce(&self, sessions: &[AnnouncedSession]) {
        self.redis.announce(sessions);
    }

    fn is_complete(&self) -> bool {
        self.redis.is_complete()
    }

    fn peer_delay(&self) -> Duration {
        self.redis.peer_delay()
    }
}
