//! What outlives the process: the session keys and the journal of ends and last uses.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use portcullis_metadata::Clock;
use portcullis_session::{SessionJournal, SessionObserver, SessionSettings, SessionStore};
use portcullis_store::{FileJournal, Recovered, Retention, StateDirectory, StateError};
use tokio::time::timeout;

use super::replicas::Replicas;
use crate::{
    container::{is_container, is_on_volume},
    plan::{ReplicasPlan, SessionPlan},
    serve::sweep::every,
};

/// The settings of the session store, and its records outside the process.
pub(crate) struct KeptSessions {
    settings: SessionSettings,
    /// Whether the next process has the same session keys, so that it can continue the sessions.
    keeps_keys: bool,
    journal: Option<Arc<FileJournal>>,
    replicas: Option<Replicas>,
    recovered: Recovered,
    /// The state directory.
    directory: Option<PathBuf>,
    /// Why the state directory cannot be used.
    error: Option<StateError>,
}

impl KeptSessions {
    /// Keeps nothing over restarts, except the configured keys.
    pub(crate) fn in_memory(plan: &SessionPlan) -> Self {
        let settings = plan.settings.clone();
        let keeps_keys = plan.key_sources.is_some();
        let recovered = Recovered::default();
        Self { settings, keeps_keys, journal: None, replicas: None, recovered, directory: None, error: None }
    }

    /// Opens the state directory. If it cannot be used, everything is kept in memory.
    pub(crate) fn open(plan: &SessionPlan, directory: Option<&Path>, clock: Arc<dyn Clock>) -> Self {
        let mut kept = Self::in_memory(plan);
        if let Some(directory) = directory {
            kept.error = kept.open_directory(directory, clock).err();
            kept.directory = Some(directory.to_owned());
        }
        kept
    }

    /// Shares the sessions with other replicas.
    ///
    /// # Errors
    /// Fails if the address of Redis cannot be used.
    pub(crate) fn share(mut self, plan: Option<&ReplicasPlan>, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        self.replicas = plan.map(|plan| Replicas::new(plan, clock)).transpose()?;
        Ok(self)
    }

    /// Logs a warning if the state directory cannot be used, or does not outlive the container.
    pub(crate) fn warn(&self) {
        if let Some(error) = &self.error {
            let fix = if is_container() {
                "in a container, mount a volume there that its user can write, or set state_dir = \"off\""
            } else {
                "or set state_dir to another directory"
            };
            tracing::warn!(
                error.code = error.code(),
                "sessions are kept in memory and end with this process: {error}; {fix}"
            );
        } else if let Some(directory) =
            self.directory.as_deref().filter(|directory| is_container() && !is_on_volume(directory))
        {
            tracing::warn!(
                "sessions end with this container: no volume is mounted at {}; mount one, or set state_dir = \"off\"",
                directory.display()
            );
        }
    }

    fn open_directory(&mut self, directory: &Path, clock: Arc<dyn Clock>) -> Result<(), StateError> {
        let directory = StateDirectory::open(directory)?;
        let generated = if self.keeps_keys { None } else { Some(directory.session_keys()?) };
        let retention = Retention { lifetime: self.settings.lifetime, idle_timeout: self.settings.idle_timeout };
        let (journal, recovered) = FileJournal::open(directory, retention, clock)?;
        if let Some(keys) = generated {
            self.settings.keys = keys;
        }
        (self.journal, self.recovered, self.keeps_keys) = (Some(Arc::new(journal)), recovered, true);
        Ok(())
    }

    /// Creates the session store with the recovered records, and releases them.
    pub(crate) fn store(&mut self, clock: Arc<dyn Clock>, observer: Arc<dyn SessionObserver>) -> SessionStore {
        let journal: Arc<dyn SessionJournal> = match (&self.replicas, &self.journal) {
            (Some(replicas), file) => replicas.journal(file.clone()),
            (None, Some(file)) => Arc::clone(file) as _,
            (None, None) => Arc::new(()),
        };
        let sessions = SessionStore::with_journal(self.settings.clone(), clock, observer, journal);
        std::mem::take(&mut self.recovered).import_into(&sessions);
        sessions
    }

    /// Returns whether sessions continue after this process.
    pub(crate) fn continue_after_restart(&self) -> bool {
        self.keeps_keys
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

/// Records last uses until the task is aborted.
pub(crate) async fn record_last_uses(sessions: SessionStore) {
    every(SessionStore::RECORD_INTERVAL, || sessions.record_last_uses()).await
}

/// Waits until everything is written, at most `limit`.
pub(crate) async fn finish(journal: &FileJournal, limit: Duration) {
    if timeout(limit, journal.flush()).await.is_err() {
        tracing::warn!("the last uses of sessions were not written in time; clients may have to open new sessions");
    }
}
