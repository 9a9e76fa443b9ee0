use std::time::Duration;

use parking_lot::Mutex;
use portcullis_scenarios::AuthorizationServer;
use portcullis_testkit::{TestIssuer, TokenBuilder};
use tokio::time::Instant;

use crate::configuration::{BASE_URL, PATH};

/// How long the server may need to notice a new key: its cooldown of 1 s, and the time of a fetch
/// on a busy machine.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

/// An issuer whose key is replaced while clients use its tokens.
pub(super) struct RotatingIssuer {
    server: AuthorizationServer,
    rotation: Mutex<Rotation>,
}

/// The replacements of the key so far.
#[derive(Clone, Copy, Default)]
struct Rotation {
    /// Their number, which is also the number of the current key.
    count: u64,
    last: Option<Instant>,
}

/// A signed token, with the number of its key.
pub(super) struct NumberedToken {
    pub(super) token: String,
    key: u64,
}

impl RotatingIssuer {
    /// Starts an issuer for the endpoint.
    pub(super) fn start() -> Self {
        Self {
            server: AuthorizationServer::start_with_es256(&format!("{BASE_URL}{PATH}")),
            rotation: Mutex::default(),
        }
    }

    pub(super) fn identifier(&self) -> &str {
        self.test_issuer().issuer().as_str()
    }

    /// Returns the issuer that signs.
    pub(super) fn test_issuer(&self) -> &TestIssuer {
        self.server.test_issuer()
    }

    /// Replaces the key. Tokens of the former key are no longer valid.
    pub(super) fn rotate(&self) {
        let mut rotation = self.rotation.lock();
        self.test_issuer().rotate();
        *rotation = Rotation {
            count: rotation.count + 1,
            last: Some(Instant::now()),
        };
    }

    /// Returns the number of replacements.
    pub(super) fn rotations(&self) -> u64 {
        self.rotation.lock().count
    }

    /// Signs a valid token with the current key.
    pub(super) fn sign(&self, change: impl FnOnce(TokenBuilder) -> TokenBuilder) -> NumberedToken {
        let rotation = self.rotation.lock();
        let token = change(self.test_issuer().token().scope("mcp:tools"));
        NumberedToken {
            token: token.sign(),
            key: rotation.count,
        }
    }

    /// Returns whether the server may reject the token: its key was replaced, or is too new.
    pub(super) fn may_be_rejected(&self, token: &NumberedToken) -> bool {
        let rotation = *self.rotation.lock();
        token.key != rotation.count
            || rotation
                .last
                .is_some_and(|last| last.elapsed() < NOTICE_TIMEOUT)
    }
}
