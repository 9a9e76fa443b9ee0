pub(crate) mod admin;
pub(crate) mod fault_effect;
pub(crate) mod faults;
pub(crate) mod log_out;
pub(crate) mod token_faults;

use std::{fmt, sync::Arc};

use crate::{
    app::App,
    authorize::user::is_user_name,
    clients::management,
    control::faults::{Fault, FaultError},
    device::{self, user_code::UserCode},
    error::DevIdpError,
    keys::{KeyPair, KeysError, OldKeys},
    logout::LogoutError,
};

/// Controls a running server, for tests. Cloning is cheap.
#[derive(Clone)]
pub struct Control(pub(crate) Arc<App>);

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

    /// Forgets a registered client, like a server that lost its database or deletes unused clients.
    /// Its codes, its device authorizations and its sessions with refresh tokens end. Authorization
    /// requests of the client then get an error page, and token requests get `invalid_client`.
    /// Returns whether the client was registered; configured clients are never forgotten.
    pub fn forget_client(&self, id: &str) -> bool {
        let is_forgotten = management::forget(&self.0, id);
        if is_forgotten {
            tracing::warn!(client.id = id, "forgot a registered client");
        }
        is_forgotten
    }

    /// Forgets all registered clients, as [`forget_client`](Self::forget_client) does, and returns
    /// their number.
    pub fn forget_all_clients(&self) -> usize {
        let ids = self.0.clients.registered_ids();
        ids.iter().filter(|id| self.forget_client(id)).count()
    }

    /// Removes a user, as if the account were deleted at a provider: the codes and sessions of the
    /// user end, so that a refresh fails with `invalid_grant`, and the access tokens are invalid at
    /// introspection and at the userinfo endpoint or the user API. The user can no longer sign in.
    /// Returns whether the user was not removed before, and `false` if the name is invalid, or
    /// 10,000 users are removed.
    pub fn remove_user(&self, user: &str) -> bool {
        let is_removed = is_user_name(user) && self.0.removed_users.remove(user).unwrap_or(false);
        if is_removed {
            self.0.codes.remove_user(user);
            self.0.sessions.withdraw_user(user, None);
            tracing::warn!(user.name = user, "removed a user");
        }
        is_removed
    }

    /// Lets a removed user sign in again. Sessions with refresh tokens stay ended. Returns whether
    /// the user was removed.
    pub fn restore_user(&self, user: &str) -> bool {
        self.0.removed_users.restore(user)
    }

    /// Logs a user out: ends the sessions that began with an ID token for a client with a
    /// `backchannel_logout_uri`, and sends a logout token for each to this URI (OpenID Connect
    /// Back-Channel Logout 1.0). Returns the number of sessions after all clients have answered.
    ///
    /// # Errors
    /// Fails if there is no such session, or a client cannot be reached or answers with an error.
    /// The sessions have ended nevertheless.
    pub async fn log_out(&self, user: &str) -> Result<usize, LogoutError> {
        log_out::log_out(&self.0, user).await
    }

    /// Approves the device authorization with this user code for a user (RFC 8628 section 3.3).
    /// Returns whether it exists, is not answered yet and has not expired, and whether the user
    /// name is valid.
    pub fn approve_device(&self, user_code: &str, user: &str) -> bool {
        is_user_name(user) && self.answer_device(user_code, Some(user.into()))
    }

    /// Denies the device authorization with this user code. Returns whether it exists, is not
    /// answered yet and has not expired.
    pub fn deny_device(&self, user_code: &str) -> bool {
        self.answer_device(user_code, None)
    }

    fn answer_device(&self, user_code: &str, subject: Option<Box<str>>) -> bool {
        UserCode::parse(user_code)
            .is_some_and(|user_code| device::answer(&self.0, &user_code, subject))
    }

    /// Replaces the signing keys. Generating the new keys takes a noticeable part of a second.
    ///
    /// # Errors
    /// Fails with [`DevIdpError::Keys`] if the keys cannot be generated. The old keys then stay in
    /// use.
    pub async fn rotate_keys(&self, old: OldKeys) -> Result<(), DevIdpError> {
        let failed = |error: KeysError| DevIdpError::Keys(error.into());
        let pair = KeyPair::generate().await.map_err(failed)?;
        self.0.keys.rotate(pair, old).map_err(failed)?;
        tracing::info!(?old, "rotated the signing keys");
        Ok(())
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("issuer", &self.0.config.issuer)
            .finish_non_exhaustive()
    }
}
