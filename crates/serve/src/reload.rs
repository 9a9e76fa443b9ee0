//! Reloading, at SIGHUP and when files change: the configuration, certificates and session keys,
//! and the audit file.

mod candidate;
mod config_file_versions;
pub(crate) mod key_material_files;
pub(crate) mod listeners;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use portcullis_audit::AuditReopener;
use tokio::{
    signal::unix::Signal,
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use self::{
    config_file_versions::{ConfigFileVersions, VersionedFile},
    key_material_files::{CHECK_PERIOD, KeyMaterialFiles},
    listeners::RunningListeners,
};
use super::{limits::open_files, state::ServerState};
use candidate::{Candidate, Reading};
use portcullis_config::{
    Change, Config, ConfigErrors, Loaded, Located, Overrides, file::Reload, plan::Contents,
};

/// The most changes, and the most reasons, that one reload logs.
const MAX_LOGGED: usize = 100;

/// Logs the warnings of a configuration, each with its place.
pub fn log_warnings(warnings: &[Located]) {
    for warning in warnings {
        tracing::warn!(config.place = warning.place(), "{}", warning.text);
    }
}

/// Where the running configuration was read from.
#[derive(Clone)]
pub struct ConfigSource {
    /// The configuration file.
    pub file: PathBuf,
    /// The values from the command line.
    pub overrides: Overrides,
    /// Reads the file, with all errors of one that cannot be used, which are logged.
    pub load: fn(&Path, Overrides) -> Result<Loaded, ConfigErrors>,
    /// The running configuration.
    pub config: Config,
    /// Whether a service manager opened the listening socket. Its address need not be configured.
    pub has_passed_socket: bool,
}

/// Reloads the server's configuration.
pub(super) struct Reloader {
    state: Arc<ArcSwap<ServerState>>,
    /// `None` without a configuration file.
    source: Option<ConfigSource>,
    audit: Option<AuditReopener>,
    listeners: RunningListeners,
    files: KeyMaterialFiles,
    /// The content of the files and secrets that the running configuration names.
    contents: Contents,
    versions: ConfigFileVersions,
    /// The file with the keys of the broker in the state directory, if it is in use.
    broker_keys: Option<VersionedFile>,
    /// The number of clients' connections that the server accepts.
    max_connections: usize,
    /// The number of attempts.
    number: u64,
}

impl Reloader {
    /// Returns a reloader for the running configuration, whose files and secrets have this content.
    /// The server accepts `max_connections` connections of clients.
    pub(super) fn new(
        state: Arc<ArcSwap<ServerState>>,
        source: Option<ConfigSource>,
        audit: Option<AuditReopener>,
        listeners: RunningListeners,
        files: KeyMaterialFiles,
        contents: Contents,
        max_connections: usize,
    ) -> Self {
        let versions = source
            .as_ref()
            .map(|source| ConfigFileVersions::of(&source.file, &source.config))
            .unwrap_or_default();
        let broker = state.load().process().broker.clone();
        let broker_keys = broker
            .and_then(|broker| broker.keys_file)
            .map(VersionedFile::now);
        Self {
            broker_keys,
            state,
            source,
            audit,
            listeners,
            files,
            contents,
            versions,
            max_connections,
            number: 0,
        }
    }

    /// Reloads at each SIGHUP and, if the configuration says so, when its files change. Never
    /// returns.
    pub(super) async fn run(mut self, mut hangups: Option<Signal>) {
        let mut period = interval(CHECK_PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = period.tick() => {
                    self.files.check();
                    if self.watches() && self.has_changed_files() {
                        self.reload().await;
                    }
                }
                () = received(hangups.as_mut()) => {
                    if let Some(audit) = &self.audit {
                        audit.reopen();
                    }
                    self.files.check();
                    self.reload().await;
                }
            }
        }
    }

    fn watches(&self) -> bool {
        self.source
            .as_ref()
            .is_some_and(|source| source.config.reload == Reload::Watch)
    }

    /// Returns whether a file has changed since the last reload.
    fn has_changed_files(&self) -> bool {
        let broker_keys = self.broker_keys.as_ref().map(VersionedFile::again);
        broker_keys != self.broker_keys || self.versions.now() != self.versions
    }

    /// Reads the configuration and replaces the running one, unless the new one cannot run.
    async fn reload(&mut self) {
        let Some(source) = &self.source else { return };
        self.number += 1;
        let source = source.clone();
        // Taken before the files are read: a later change is then noticed.
        self.versions = self.versions.now();
        self.broker_keys = self.broker_keys.as_ref().map(VersionedFile::again);
        let reading = spawn_blocking(move || Candidate::read(&source)).await;
        let result = match reading {
            Ok(Reading {
                versions,
                candidate,
            }) => {
                if let Some(versions) = versions {
                    self.versions = versions.with_first_of(&self.versions);
                }
                candidate
            }
            Err(_) => {
                self.count(false);
                return tracing::error!(
                    config.reload = self.number,
                    "reading the configuration was interrupted"
                );
            }
        };
        let result = match result {
            Ok(candidate) => self
                .apply(candidate)
                .await
                .map_err(|error| vec![format!("{error:#}")]),
            Err(ConfigErrors(errors)) => Err(errors.iter().map(ToString::to_string).collect()),
        };
        self.count(result.is_ok());
        if let Err(reasons) = result {
            self.log_rejected(&reasons);
        }
    }

    /// Replaces the running configuration between two requests.
    async fn apply(&mut self, candidate: Candidate) -> anyhow::Result<()> {
        let Candidate {
            config,
            mut plan,
            warnings,
            mut changes,
        } = candidate;
        changes.extend(plan.contents.changed_since(&self.contents));
        let previous = self.state.load_full();
        changes.extend(previous.has_other_broker_keys().then(|| Change {
            key: "broker.keys".to_owned(),
            old: "former content".to_owned(),
            new: "new content".to_owned(),
        }));
        if changes.is_empty() {
            tracing::info!(
                config.reload = self.number,
                "the configuration has not changed"
            );
            return Ok(());
        }
        let has_changed = |table: &str| changes.iter().any(|change| change.key.starts_with(table));
        // First: until the new addresses are bound, nothing is replaced.
        let listeners = self
            .listeners
            .bind(&plan, has_changed("admin."), &self.state)?;
        let shortage = open_files::fit_reloaded(&mut plan, self.max_connections);
        let current = Arc::new(ServerState::new(
            &plan,
            previous.process(),
            Some(&previous),
        )?);
        current.set_connection_limits(&plan);
        current.fetch_new_keys(&previous).await;
        self.state.store(Arc::clone(&current));
        let metrics = current.process().observers.metrics.clone();
        self.listeners.replace(listeners, metrics.as_deref()).await;
        current.receive_broker_ends();
        current.supersede_replaced();
        current
            .process()
            .upstream_ends
            .set_upstreams(current.upstreams());
        let ended = current.end_sessions_of(&previous);
        let sessions_ended = ended.sessions.len();
        let streams_ended = current.end_streams();
        current.finish_ends(ended);
        if has_changed("tls.") || has_changed("session.keys") {
            self.files.replace(&plan, self.listeners.tls());
        }
        self.contents = plan.contents;
        if let Some(source) = &mut self.source {
            source.config = config;
        }
        if let Some(shortage) = shortage {
            shortage.log();
        }
        log_warnings(&warnings);
        for Change { key, old, new } in changes.iter().take(MAX_LOGGED) {
            tracing::info!(
                config.key = key,
                config.old = old,
                config.new = new,
                "a setting has changed"
            );
        }
        tracing::info!(
            config.reload = self.number,
            config.changes = changes.len(),
            sessions.ended = sessions_ended,
            streams.ended = streams_ended,
            "the configuration was replaced"
        );
        Ok(())
    }

    fn count(&self, is_accepted: bool) {
        let state = self.state.load();
        let process = state.process();
        if let Some(metrics) = &process.observers.metrics {
            metrics.reloaded(is_accepted, process.clock.now());
        }
    }

    fn log_rejected(&self, reasons: &[String]) {
        for reason in reasons.iter().take(MAX_LOGGED) {
            tracing::error!(
                config.reload = self.number,
                config.reason = reason,
                "the configuration is invalid"
            );
        }
        tracing::error!(
            config.reload = self.number,
            config.reasons = reasons.len(),
            "the new configuration was rejected; the running one is unchanged"
        );
    }
}

/// Waits for a SIGHUP; forever if none is handled.
async fn received(hangups: Option<&mut Signal>) {
    if let Some(hangups) = hangups
        && hangups.recv().await.is_some()
    {
        return;
    }
    std::future::pending().await
}
