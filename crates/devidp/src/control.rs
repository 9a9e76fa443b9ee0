use std::{fmt, sync::Arc};

use crate::{
    DevIdpError, Fault, FaultProblem,
    app::App,
    keys::{KeyPair, KeysError},
};

/// A hand on a server while it runs, for tests. Cheap to clone.
#[derive(Clone)]
pub struct Control(pub(crate) Arc<App>);

/// What becomes of keys that are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OldKeys {
    /// They stay published for as long as tokens that they signed can live.
    #[default]
    Keep,
    /// They are withdrawn at once, with all that were replaced before, as after a theft: tokens that they signed are worth
    /// nothing any more.
    Withdraw,
}

impl Control {
    /// Lets a fault strike the requests to come, after those that wait at the same place.
    ///
    /// # Errors
    /// When the fault makes no sense, or 100 wait already.
    pub fn inject(&self, fault: Fault) -> Result<(), FaultProblem> {
        self.0.faults.inject(fault)
    }

    /// How many faults are still to strike.
    pub fn pending_faults(&self) -> usize {
        self.0.faults.len()
    }

    /// Forgets all faults that wait. One that strikes already is not stopped.
    pub fn clear_faults(&self) {
        self.0.faults.clear();
    }

    /// Replaces the signing keys by new ones, which takes a noticeable part of a second.
    ///
    /// # Errors
    /// [`DevIdpError::Keys`] when no key can be made; the old ones then go on.
    pub async fn rotate_keys(&self, old: OldKeys) -> Result<(), DevIdpError> {
        let pair = new_pair().await?;
        self.0.keys.rotate(pair, old).map_err(|error| DevIdpError::Keys(error.into()))?;
        tracing::info!(?old, "rotated the signing keys");
        Ok(())
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("issuer", &self.0.issuer).finish_non_exhaustive()
    }
}

/// Makes keys beside the runtime, which they would hold up.
pub(crate) async fn new_pair() -> Result<KeyPair, DevIdpError> {
    match tokio::task::spawn_blocking(KeyPair::generate).await {
        Ok(pair) => pair.map_err(|error: KeysError| DevIdpError::Keys(error.into())),
        Err(error) => Err(DevIdpError::Keys(error.into())),
    }
}
