//! [`NewRegistration`]: the question before a client is registered again for more scopes.

use std::fmt;

use portcullis_metadata::{Issuer, Scopes};

use crate::{Shortened, StartUrl};

/// A new registration that a step-up needs: the present one lacks scopes, and the authorization
/// server does not update it (RFC 7592). The new client is another owner of sessions, so the
/// session with the server starts again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewRegistration {
    /// The URL to sign in for.
    pub start: StartUrl,
    /// The authorization server.
    pub issuer: Issuer,
    /// The scopes that the registration lacks.
    pub missing: Scopes,
    /// All scopes to request.
    pub scopes: Scopes,
}

impl fmt::Display for NewRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the client's registration at {} lacks the scopes {}, and the authorization server does not update it",
            self.issuer,
            Shortened(&self.missing)
        )
    }
}
