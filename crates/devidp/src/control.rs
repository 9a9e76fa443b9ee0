//! [`Control`]: changes a running server from tests.

pub(crate) mod admin;
pub(crate) mod faults;

use std::{fmt, sync::Arc};

use crate::{
    app::App,
    authorize::user::is_user_name,
    control::faults::{Fault, FaultError},
    device::{self, UserCode},
    error::DevIdpError,
    keys::{KeyPair, KeysError},
};

/// Controls a running server, for tests. Cloning is cheap.
#[derive(Clone)]
pub struct Control(pub(crate) Arc<App>);

/// What happens to signing keys that are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OldKeys {
    /// The keys stay published until the tokens that they signed have expired.
    #[default]
    Keep,
    /// These keys and all keys that were replaced before are withdrawn at once, as after a theft. Tokens that they
    /// signed no longer verify.
    Withdraw,
}

impl Control {
    /// Adds a fault for future requests. Earlier faults at the same point apply first.
    ///
    /// # Errors
    /// Fails if the fault is invalid or 100 faults are pending.
    pub fn inject(&self, fault: Fault) -> Result<(), FaultError> {
        self.0.faults.inject(fault)
    }

    /// Returns the number of pending faults.
    pub fn pending_faults(&self) -> usize {
        self.0.faults.len()
    }

    /// Removes all pending faults. A fault that already applies to a request is not stopped.
    pub fn clear_faults(&self) {
        self.0.faults.clear();
    }

    /// Forgets a registered client, like a server that lost its database or deletes unused clients. Its codes and its
    /// sessions with refresh tokens end. Authorization requests of the client then get an error page, and token
    /// requests get `invalid_client`. Returns whether the client was registered; configured clients are never
    /// forgotten.
    pub fn forget_client(&self, id: &str) -> bool {
        let is_forgotten = self.0.forget_client(id);
        if is_forgotten {
            tracing::warn!(client.id = id, "forgot a registered client");
        }
        is_forgotten
    }

    /// Forgets all registered clients, as [`forget_client`](Self::forget_client) does, and returns their number.
    pub fn forget_all_clients(&self) -> usize {
        let ids = self.0.clients.collect(|row| Some(row.information.client_id.clone()));
        ids.iter().filter(|id| self.forget_client(id)).count()
    }

    /// Approves the device authorization with this user code for a user (RFC 8628 section 3.3). Returns whether it exists, is
    /// not answered yet and has not expired, and whether the user name is valid.
    pub fn approve_device(&self, user_code: &str, user: &str) -> bool {
        is_user_name(user) && self.answer_device(user_code, Some(user.into()))
    }

    /// Denies the device authorization with this user code. Returns whether it exists, is not answered yet and has not
    /// expired.
    pub fn deny_device(&self, user_code: &str) -> bool {
        self.answer_device(user_code, None)
    }

    fn answer_device(&self, user_code: &str, subject: Option<Box<str>>) -> bool {
        UserCode::parse(user_code).is_some_and(|user_code| device::answer(&self.0, &user_code, subject))
    }

    /// Replaces the signing keys. Generating the new keys takes a noticeable part of a second.
    ///
    /// # Errors
    /// Fails with [`DevIdpError::Keys`] if the keys cannot be generated. The old keys then stay in use.
    pub async fn rotate_keys(&self, old: OldKeys) -> Result<(), DevIdpError> {
        let pair = generate_keys().await?;
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

/// Generates keys on a blocking thread, because it takes long.
pub(crate) async fn generate_keys() -> Result<KeyPair, DevIdpError> {
    match tokio::task::spawn_blocking(KeyPair::generate).await {
        Ok(pair) => pair.map_err(|error: KeysError| DevIdpError::Keys(error.into())),
        Err(error) => Err(DevIdpError::Keys(error.into())),
    }
}
