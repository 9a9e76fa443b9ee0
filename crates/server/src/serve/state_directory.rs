//! Opening of the state directory at the start.

use std::{path::Path, time::Duration};

use anyhow::anyhow;
use portcullis_store::{StateDirectory, StateError};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{config::WithoutState, container::is_container, plan::Plan};

/// How often a directory that another process uses is tried.
const RETRY: Duration = Duration::from_millis(100);

/// The state directory of this process.
pub(crate) enum OpenedState {
    /// Everything is kept in memory, by configuration.
    Off,
    /// The directory, locked.
    Directory(StateDirectory),
    /// The directory cannot be used, and the configuration permits that.
    Unusable(StateError),
}

impl OpenedState {
    /// Returns the directory.
    pub(crate) fn directory(&self) -> Option<&StateDirectory> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Off | Self::Unusable(_) => None,
        }
    }
}

/// Opens the state directory. If another process uses it, as during a restart, waits until that has ended, for at most
/// `shutdown_timeout`. Returns `None` if the shutdown begins meanwhile.
///
/// # Errors
/// Fails if the directory cannot be used, unless [`WithoutState::RejectEnds`] permits that.
pub(crate) async fn open(plan: &Plan, shutdown: watch::Receiver<bool>) -> anyhow::Result<Option<OpenedState>> {
    let Some(path) = &plan.state_dir else { return Ok(Some(OpenedState::Off)) };
    let Some(opened) = open_when_free(path, plan.shutdown_timeout, shutdown).await else { return Ok(None) };
    match opened {
        Ok(directory) => Ok(Some(OpenedState::Directory(directory))),
        Err(error) if plan.session.without_state == WithoutState::RejectEnds => Ok(Some(OpenedState::Unusable(error))),
        Err(error) => Err(refusal(&error)),
    }
}

/// Returns the error of a start without a usable state directory. Sessions that have ended could be accepted again.
pub(crate) fn refusal(error: &StateError) -> anyhow::Error {
    let volume = if is_container() { "in a container, mount a volume there that its user can write; " } else { "" };
    anyhow!(
        "the state directory cannot be used ({}): {error}; {volume}or set state_dir to another directory or to \"off\", or \
         session.without_state = \"reject_ends\" to start without it",
        error.code()
    )
}

async fn open_when_free(
    path: &Path,
    limit: Duration,
    mut shutdown: watch::Receiver<bool>,
) -> Option<Result<StateDirectory, StateError>> {
    let deadline = Instant::now() + limit;
    let mut is_logged = false;
    loop {
        match StateDirectory::open(path) {
            Err(StateError::InUse { .. }) if Instant::now() < deadline => {}
            opened => return Some(opened),
        }
        if !std::mem::replace(&mut is_logged, true) {
            tracing::info!(state.directory = %path.display(), "waiting for the process that uses the state directory");
        }
        tokio::select! {
            () = sleep(RETRY) => {}
            _ = shutdown.wait_for(|shutdown| *shutdown) => return None,
        }
    }
}
