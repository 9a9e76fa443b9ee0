//! An issuer whose key is replaced while clients use its tokens.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use portcullis_scenarios::AuthorizationServer;
use portcullis_testkit::{TestIssuer, TokenBuilder};
use tokio::time::Instant;

use crate::portcullis::{BASE_URL, PATH};

/// How long the server may need to notice a new key: its cooldown of 1 s, and the time of a fetch on a busy machine.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

/// The issuer, and when its key was replaced.
pub(super) struct RotatingIssuer {
    server: AuthorizationServer,
    rotation: Mutex<(u64, Option<Instant>)>,
}

/// A signed token, with the number of its key.
pub(super) struct NumberedToken {
    pub(super) token: String,
    key: u64,
}

impl RotatingIssuer {
    /// Starts an issuer for the endpoint.
    pub(super) fn start() -> Self {
        Self { server: AuthorizationServer::start_with_es256(&format!("{BASE_URL}{PATH}")), rotation: Mutex::default() }
    }

    pub(super) fn identifier(&self) -> &str {
        self.test_issuer().issuer().as_str()
    }

    pub(super) fn test_issuer(&self) -> &TestIssuer {
        self.server.test_issuer()
    }

    /// Replaces the key. Tokens of the former key are no longer valid.
    pub(super) fn rotate(&self) {
        let mut rotation = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        self.test_issuer().rotate();
        *rotation = (rotation.0 + 1, Some(Instant::now()));
    }

    /// Returns the number of replacements.
    pub(super) fn rotations(&self) -> u64 {
        self.rotation.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Signs a valid token with the current key.
    pub(super) fn sign(&self, change: impl FnOnce(TokenBuilder) -> TokenBuilder) -> NumberedToken {
        let rotation = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let token = change(self.test_issuer().token().scope("mcp:tools"));
        NumberedToken { token: token.sign(), key: rotation.0 }
    }

    /// Returns whether the server may reject the token: its key was replaced, or is too new.
    pub(super) fn may_be_rejected(&self, token: &NumberedToken) -> bool {
        let (key, rotated) = *self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        token.key != key || rotated.is_some_and(|rotated| rotated.elapsed() < NOTICE_TIMEOUT)
    }
}
