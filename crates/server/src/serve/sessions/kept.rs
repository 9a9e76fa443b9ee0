//! What outlives the process: the session keys and the journal of ends and last uses.

use std::{path::PathBuf, sync::Arc, time::Duration};

use portcullis_metadata::Clock;
use portcullis_session::{
    EndReason, EndScope, EndTicket, LastUse, SessionEnd, SessionJournal, SessionObserver, SessionSettings, SessionStore,
};
use portcullis_store::{FileJournal, Recovered, Retention, StateDirectory, StateError};
use tokio::time::timeout;

use super::replicas::Replicas;
use crate::{
    config::WithoutState,
    container::{is_container, is_on_volume},
    plan::{Plan, ReplicasPlan, SessionPlan},
    serve::{
        state_directory::{OpenedState, refusal},
        sweep::every,
    },
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
    /// Why the state directory cannot be used. No end is then confirmed, unless replicas know it.
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

    /// Reads the state directory.
    ///
    /// # Errors
    /// Fails if it cannot be used, unless [`WithoutState::RejectEnds`] permits that.
    pub(crate) fn open(plan: &SessionPlan, state: OpenedState, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let mut kept = Self::in_memory(plan);
        let opened = match state {
            OpenedState::Off => return Ok(kept),
            OpenedState::Unusable(error) => Err(error),
            OpenedState::Directory(directory) => kept.open_journal(directory, clock),
        };
        match opened {
            Ok(()) => Ok(kept),
            Err(error) if plan.without_state == WithoutState::RejectEnds => {
                kept.error = Some(error);
                Ok(kept)
            }
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Shares the sessions with other replicas.
    ///
    /// # Errors
    /// Fails if the address of Redis cannot be used.
    pub(crate) fn share(mut self, plan: Option<&ReplicasPlan>, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        self.replicas = plan.map(|plan| Replicas::new(plan, clock)).transpose()?;
        Ok(self)
    }

    /// Logs if the state directory cannot be used, or does not outlive the container.
    pub(crate) fn warn(&self) {
        if let Some(error) = &self.error {
            tracing::error!(
                error.code = error.code(),
                "earlier sessions have ended, and no end of a session is confirmed: {error}"
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

    fn open_journal(&mut self, directory: StateDirectory, clock: Arc<dyn Clock>) -> Result<(), StateError> {
        self.directory = Some(directory.path().to_owned());
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
            (None, None) if self.error.is_some() => Arc::new(Unrecordable),
            (None, None) => Arc::new(()),
        };
        let sessions = SessionStore::with_journal(self.settings.clone(), clock, observer, journal);
        std::mem::take(&mut self.recovered).import_into(&sessions);
        sessions
    }

    /// If ended sessions are not known, ends all earlier ones: an identifier from before this start is not accepted.
    pub(crate) fn end_unknown(&self, sessions: &SessionStore, plan: &Plan) {
        if self.error.is_none() || self.replicas.is_some() {
            return;
        }
        for resource in &plan.resources {
            // Nothing waits for the record, which fails.
            drop(sessions.end_scope(EndScope::Resource(&resource.metadata.resource), EndReason::Overflow));
        }
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

/// A journal that can record nothing, so that no end is confirmed.
struct Unrecordable;

impl SessionJournal for Unrecordable {
    fn record(&self, _end: &SessionEnd) -> EndTicket {
        EndTicket::failed()
    }

    fn record_last_uses(&self, _uses: &[LastUse]) {}
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
