//! Session identifiers: sealed records that each process with the key can open.

mod cipher;
mod generation;
mod key;
mod keys;
mod record;
mod sealed;

use std::{
    fmt,
    hash::{Hash as _, Hasher as _},
    ops::Deref,
};

use portcullis_metadata::Scopes;

pub(crate) use self::{
    generation::{Generation, Generations},
    record::{Record, SessionId, Version},
    sealed::{AssociatedData, Head, MAX_BACKEND_ID, head, open, seal, successor_random},
};
pub use self::{key::SessionKey, keys::SessionKeys};

/// The 16 bytes by which an identifier is found in the table. Those of a session's first identifier
/// are the session's id.
pub(crate) type RandomPart = [u8; 16];

/// A session identifier for the client: at most 512 characters of base64url. `Debug` prints
/// `[redacted]`. Do not log it.
#[derive(Clone, PartialEq, Eq)]
pub struct Identifier(Box<str>);

impl Identifier {
    /// Returns an identifier that is always unknown.
    pub(crate) fn empty() -> Self {
        Self(Box::default())
    }
}

impl Deref for Identifier {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identifier([redacted])")
    }
}

impl SessionKey {
    /// Returns a short hash that distinguishes sets of scopes.
    pub(crate) fn scopes_fingerprint(&self, scopes: &Scopes) -> u64 {
        let mut hasher = self.fingerprint_hasher();
        hasher.write(b"scopes ");
        scopes.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a short hash that distinguishes upstreams.
    pub(crate) fn upstream_hash(&self, identity: &str) -> u64 {
        key::finish(
            self.fingerprint_hasher(),
            [b"upstream ".as_slice(), identity.as_bytes()],
        )
    }

    /// Returns a short hash that distinguishes the identifiers of one session. It is computed for
    /// each request.
    pub(crate) fn text_hash(&self, identifier: &[u8]) -> u64 {
        key::finish(self.text_hasher(), [identifier])
    }

    /// Returns a short hash for logs, which reveals no part of an identifier.
    pub(crate) fn log_hash(&self, session: &SessionId) -> u64 {
        key::finish(self.log_hasher(), [session.as_slice()])
    }
}

#[cfg(test)]
mod tests;
