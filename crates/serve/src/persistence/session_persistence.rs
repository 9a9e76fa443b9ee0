//! What outlives the process: the session keys and the journal of ends and last uses.

use std::{path::PathBuf, sync::Arc, time::Duration};

use portcullis_metadata::Clock;
use portcullis_session::{
    EndTicket, LastUse, SessionEnd, SessionJournal, SessionObserver, SessionSettings, SessionStore,
};
use portcullis_state_store::{FileJournal, Recovered, Retention, StateDirectory, StateError};
use tokio::time::timeout;

use crate::{background::periodic::every, replicas::Replicas};
use portcullis_config::container::{is_container, is_on_volume};
use portcullis_config::plan::{Plan, ReplicasPlan, SessionPlan};

/// The settings of the session store, and its records outside the process.
pub(crate) struct SessionPersistence {
    settings: SessionSettings,
    /// Whether the configuration has the keys of identifiers, so that they outlive the container.
    are_keys_configured: bool,
    /// Whether the next process, or another replica, can continue the sessions.
    are_continued: bool,
    /// Whether sessions of earlier processes have ended, because their ends are not known.
    ends_earlier: bool,
    /// Whether ends are not confirmed, because they cannot be recorded.
    rejects_ends: bool,
    journal: Option<Arc<FileJournal>>,
    replicas: Option<Replicas>,
    recovered: Recovered,
    /// The state directory.
    directory: Option<PathBuf>,
}

/// Records nothing, and confirms no end.
struct NoJournal;

impl SessionPersistence {
    /// Keeps nothing in a directory.
    pub(crate) fn in_memory(plan: &Plan) -> Self {
        let SessionPlan {
            settings,
            key_sources,
            ..
        } = &plan.session;
        let are_keys_configured = key_sources.is_some();
        Self {
            settings: settings.clone(),
            are_keys_configured,
            are_continued: are_keys_configured,
            ends_earlier: false,
            rejects_ends: false,
            journal: None,
            replicas: None,
            recovered: Recovered::default(),
            directory: None,
        }
    }

    /// Recovers the sessions from the state directory. Without one, keeps them in memory. Fails if
    /// the keys or the journal in it cannot be used.
    pub(crate) fn open(
        plan: &Plan,
        directory: Option<StateDirectory>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StateError> {
        let mut persistence = Self::in_memory(plan);
        let Some(directory) = directory else {
            return Ok(persistence);
        };
        persistence.directory = Some(directory.path().to_owned());
        // A new directory with shared keys is that of another replica, which continues sessions.
        let must_know_ends = directory.was_used() && plan.replicas.is_none();
        if plan.session.key_sources.is_none() {
            persistence.settings.keys = directory.session_keys()?;
        }
        let SessionSettings {
            lifetime,
            idle_timeout,
            ..
        } = persistence.settings;
        let retention = Retention {
            lifetime,
            idle_timeout,
        };
        let unknown = must_know_ends.then(|| end_of_earlier(&*clock));
        let (journal, recovered) = FileJournal::open(directory, retention, clock, unknown)?;
        (persistence.journal, persistence.recovered) = (Some(Arc::new(journal)), recovered);
        (persistence.are_continued, persistence.ends_earlier) = (true, false);
        Ok(persistence)
    }

    /// Runs without the state directory: earlier sessions have ended, and no end is confirmed.
    /// Replicas continue with Redis alone.
    pub(crate) fn without_directory(plan: &Plan, error: &StateError) -> Self {
        tracing::warn!(
            error.code = error.code(),
            "sessions are kept in memory and end with this process, and DELETE requests get 503 unless sessions are shared: {error}"
        );
        // Replicas learn the ends from each other.
        let is_alone = plan.replicas.is_none();
        let in_memory = Self::in_memory(plan);
        let are_continued = in_memory.are_continued && !is_alone;
        Self {
            are_continued,
            ends_earlier: is_alone,
            rejects_ends: is_alone,
            ..in_memory
        }
    }

    /// Shares the sessions with other replicas. Fails if the address of Redis cannot be used.
    pub(crate) fn share(
        mut self,
        plan: Option<&ReplicasPlan>,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        self.replicas = plan.map(|plan| Replicas::new(plan, clock)).transpose()?;
        Ok(self)
    }

    /// Logs whether sessions of earlier processes have ended, and a warning if sessions, or their
    /// ends, are lost with the container because no volume has the state directory.
    pub(crate) fn report(&self) {
        if self.ends_earlier {
            tracing::info!(
                "sessions of earlier processes have ended: no state directory keeps which of them continue"
            );
        }
        if let (Some(directory), Some(loss)) = (&self.directory, self.loss_with_directory())
            && is_container()
            && !is_on_volume(directory)
        {
            tracing::warn!(
                "{loss}: no volume is mounted at {}; mount one, or set state_dir = \"off\"",
                directory.display()
            );
        }
    }

    /// What is lost without the state directory. `None` if other replicas have it.
    fn loss_with_directory(&self) -> Option<&'static str> {
        match (self.are_keys_configured, &self.replicas) {
            (false, _) => Some("sessions end with this container"),
            (true, None) => {
                Some("sessions that have ended become valid again when this container is replaced")
            }
            (true, Some(_)) => None,
        }
    }

    /// Creates the session store with the recovered records, and releases them.
    pub(crate) fn store(
        &mut self,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn SessionObserver>,
    ) -> SessionStore {
        let journal: Arc<dyn SessionJournal> = match (&self.replicas, &self.journal) {
            (Some(replicas), file) => replicas.journal(file.clone()),
            (None, Some(file)) => Arc::clone(file) as _,
            (None, None) if self.rejects_ends => Arc::new(NoJournal),
            (None, None) => Arc::new(()),
        };
        let earlier = self.ends_earlier.then(|| end_of_earlier(&*clock));
        let sessions = SessionStore::builder(self.settings.clone())
            .clock(clock)
            .observer(observer)
            .journal(journal)
            .build();
        earlier.iter().for_each(|end| sessions.import(end));
        std::mem::take(&mut self.recovered).import_into(&sessions);
        sessions
    }

    /// Returns whether sessions continue after this process.
    pub(crate) fn continue_after_restart(&self) -> bool {
        self.are_continued
    }

    /// Returns the journal of the state directory.
    pub(crate) fn journal(&self) -> Option<Arc<FileJournal>> {
        self.journal.clone()
    }

    /// Returns the connection to other replicas.
    pub(crate) fn replicas(&self) -> Option<&Replicas> {
        self.replicas.as_ref()
    }
}

impl SessionJournal for NoJournal {
    fn record(&self, _: &SessionEnd) -> EndTicket {
        EndTicket::failed()
    }

    fn record_last_uses(&self, _: &[LastUse]) {}
}

/// Returns the end of all sessions that were opened before now. The clock of the process that
/// opened one can have been ahead.
fn end_of_earlier(clock: &dyn Clock) -> SessionEnd {
    SessionEnd::Floor {
        scope: None,
        created: clock
            .now()
            .saturating_add(SessionStore::MAX_CLOCK_DIFFERENCE),
    }
}

/// Records last uses until the task is aborted.
pub(crate) async fn record_last_uses(sessions: SessionStore) {
    every(SessionStore::RECORD_INTERVAL, || {
        sessions.record_last_uses()
    })
    .await
}

/// Waits until everything is written, at most `limit`.
pub(crate) async fn finish(journal: &FileJournal, limit: Duration) {
    if timeout(limit, journal.flush()).await.is_err() {
        tracing::warn!(
            "the last uses of sessions were not written in time; clients may have to open new sessions"
        );
    }
}
