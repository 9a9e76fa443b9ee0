//! [`Persistence`]: what outlives the process, opened before anything else starts.

pub(crate) mod session_persistence;
mod state_directory;

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context as _, anyhow};
use portcullis_audit::{
    AuditSettings, AuditTrail, ChainError, ChainKeys, StartError, WithoutChain,
};
use portcullis_discovery::Product;
use portcullis_metadata::SystemClock;
use portcullis_state_store::{StateDirectory, StateError};
use tokio::sync::watch;

use self::{session_persistence::SessionPersistence, state_directory::Opening};
use super::{
    broker::{self, persistence::BrokerPersistence},
    error::ServeError,
};
use portcullis_config::container::is_container;
use portcullis_config::{
    Diagnostic, KeyPath,
    file::WithoutState,
    plan::{AuditPlan, Plan},
};

/// The sessions and the audit trail of earlier processes, which this one continues.
pub struct Persistence {
    pub(super) sessions: SessionPersistence,
    pub(super) audit: Option<AuditTrail>,
    /// `None` without a broker, and if it keeps nothing.
    pub(super) broker: Option<BrokerPersistence>,
}

impl Persistence {
    /// Keeps nothing: the sessions and the sign-ins at the broker end with the process, and there
    /// is no audit trail.
    pub fn in_memory(plan: &Plan) -> Self {
        Self {
            sessions: SessionPersistence::in_memory(plan),
            audit: None,
            broker: None,
        }
    }

    /// Opens the state directory, which holds the sessions and the key of the audit trail, and then
    /// the trail, whose first record has the version of `product`. Waits for the process that uses
    /// the directory, at most for the longest shutdown of that process. Returns `None` if
    /// `shutdown` becomes true meanwhile.
    ///
    /// `listen` is the address that the caller will bind, or `None` if it is bound already. If
    /// another process still listens on it after the time in which a process that shuts down closes
    /// its listener, there is no wait for the directory.
    ///
    /// # Errors
    /// Fails if one of them cannot be used and the configuration does not permit to start without
    /// it, or if another process uses both the directory and `listen`. The message names the key
    /// and the fix.
    pub async fn open(
        plan: &Plan,
        product: Product,
        listen: Option<SocketAddr>,
        shutdown: watch::Receiver<bool>,
    ) -> Result<Option<Self>, ServeError> {
        Self::opened(plan, product, listen, shutdown)
            .await
            .map_err(|error| {
                // The texts begin with the key, as those of `examine` do.
                let found = Diagnostic::new(&KeyPath::default(), &format!("{error:#}"));
                if found.key.is_root() {
                    ServeError::of(error)
                } else {
                    ServeError::Setting(found)
                }
            })
    }

    async fn opened(
        plan: &Plan,
        product: Product,
        listen: Option<SocketAddr>,
        shutdown: watch::Receiver<bool>,
    ) -> anyhow::Result<Option<Self>> {
        let directory = match &plan.state_dir {
            None => Directory::Off,
            Some(path) => match state_directory::open(path, plan, listen, shutdown).await {
                Ok(Opening::Open(directory)) => Directory::Open(directory),
                Ok(Opening::ShuttingDown) => {
                    tracing::info!(
                        "shutting down: the state directory is still in use by another process"
                    );
                    return Ok(None);
                }
                Ok(Opening::AddressInUse(address)) => return Err(anyhow!(served(address, path))),
                Err(error) => Directory::Unusable(error),
            },
        };
        // The former process has released the directory after its last record, so that the trail
        // continues after that.
        let keys = match &plan.audit {
            Some(audit) => chain_keys(audit, &directory)?,
            None => None,
        };
        let clock = Arc::new(SystemClock::new());
        let directory = match directory {
            Directory::Open(directory) => Ok(Some(directory)),
            Directory::Off => Ok(None),
            Directory::Unusable(error) => Err(error),
        };
        let broker = match (&plan.broker, &directory) {
            (None, _) => None,
            (Some(_), Err(error)) if plan.replicas.is_none() => {
                return Err(anyhow!(broker::persistence::refusal(error)));
            }
            (Some(_), directory) => {
                let directory = directory.as_ref().ok().and_then(Option::as_ref);
                let clock = Arc::clone(&clock) as _;
                Some(BrokerPersistence::open(plan, directory, clock).await?)
            }
        };
        let opened = directory.and_then(|directory| {
            SessionPersistence::open(plan, directory, Arc::clone(&clock) as _)
        });
        let sessions = match opened {
            Ok(sessions) => sessions,
            Err(error) if plan.session.without_state == WithoutState::RejectEnds => {
                SessionPersistence::without_directory(plan, &error)
            }
            Err(error) => return Err(anyhow!(refusal(&error))),
        };
        let start = |audit: &AuditPlan| {
            let mut settings = audit.settings.clone();
            settings.version = product.version;
            start_trail(&settings, keys.as_ref(), plan.workers, clock)
        };
        let audit = plan.audit.as_ref().map(start).transpose()?;
        Ok(Some(Self {
            sessions,
            audit,
            broker,
        }))
    }
}

/// Returns whether the configuration does not permit records without a chain.
pub(crate) fn must_chain(audit: &AuditPlan) -> bool {
    audit.settings.without_chain == WithoutChain::Refuse
}

/// The state directory at the start.
enum Directory {
    /// Everything is kept in memory.
    Off,
    Open(StateDirectory),
    Unusable(StateError),
}

/// Returns the keys of the chain: the configured ones, or else those in the state directory. `None`
/// if records are not chained. Fails if there is no usable key, and the configuration does not
/// permit records without a chain.
fn chain_keys(audit: &AuditPlan, directory: &Directory) -> anyhow::Result<Option<ChainKeys>> {
    if let Some(keys) = &audit.keys {
        return Ok(Some(keys.clone()));
    }
    let keys = match directory {
        Directory::Off => {
            tracing::warn!(
                "audit records are not chained: there is no key; set audit.key, or state_dir to a directory"
            );
            return Ok(None);
        }
        Directory::Open(directory) => directory
            .audit_key()
            .map_err(anyhow::Error::from)
            .and_then(|text| parse_chain_keys(directory.path(), &text)),
        Directory::Unusable(error) => Err(without_directory(error)),
    };
    match keys {
        Ok(keys) => Ok(Some(keys)),
        Err(error) if !must_chain(audit) => {
            tracing::warn!("audit records are not chained: {error:#}");
            Ok(None)
        }
        Err(error) => Err(anyhow!(unchained(&error))),
    }
}

/// Parses the content of the file with the keys of the chain.
pub(crate) fn parse_chain_keys(directory: &Path, text: &str) -> anyhow::Result<ChainKeys> {
    let file = directory.join(StateDirectory::AUDIT_KEY);
    ChainKeys::parse(text).with_context(|| file.display().to_string())
}

/// Returns why the key of the chain cannot be read from a state directory that cannot be used.
pub(crate) fn without_directory(error: &StateError) -> anyhow::Error {
    anyhow!("the key cannot be read: {error}")
}

/// Starts the trail. Logs why a new chain begins, if the former one cannot be continued and the
/// configuration permits that. Fails as [`AuditTrail::start`] does. The message names the key and
/// the fix.
fn start_trail(
    settings: &AuditSettings,
    keys: Option<&ChainKeys>,
    workers: usize,
    clock: Arc<SystemClock>,
) -> anyhow::Result<AuditTrail> {
    let trail = AuditTrail::start(settings, keys, workers, clock).map_err(|error| match error {
        StartError::Chain(error) => anyhow!(not_continued(&error)),
        StartError::Thread(error) => error.into(),
        other => anyhow::Error::from(other).context("audit.target"),
    })?;
    if let Some(error) = trail.chain_error() {
        tracing::warn!(
            "a new chain of audit records begins: {}",
            not_continued(error)
        );
    }
    Ok(trail)
}

/// Returns why the server does not start without the state directory, and the fixes.
pub(crate) fn refusal(error: &StateError) -> String {
    let other = match is_container() {
        true => "in a container, mount a volume there that its user can write",
        false => "set state_dir to another directory",
    };
    format!(
        "state_dir: {error}; or {other}, or set session.without_state = \"reject_ends\" to start without it, which ends all earlier \
         sessions [{}]",
        error.code()
    )
}

/// Returns why the server does not start beside another one of the same configuration, and the fix.
fn served(address: SocketAddr, directory: &Path) -> String {
    format!(
        "cannot listen on {address}: another process uses the port and the state directory {}, probably a server with this \
         configuration; stop that one, or set both listen and state_dir to others [state.in_use]",
        directory.display()
    )
}

/// Returns why the server does not start without a key of the chain, and the fixes.
pub(crate) fn unchained(error: &anyhow::Error) -> String {
    format!(
        "audit.key: records cannot be chained: {error:#}; or set audit.key to the source of another key, or audit.without_chain = \
         \"write\" to write records without a chain"
    )
}

/// Returns why the chain cannot be continued in the configured file, and the fixes.
pub(crate) fn not_continued(error: &ChainError) -> String {
    format!("audit.target: {error}, or set audit.without_chain = \"write\" to begin a new chain")
}
