//! [`RegistrationRules`]: how much of what a client says about itself must be supported.

use std::fmt;

use crate::client::RedirectPolicy;

/// How much of what a client says about itself must be supported: in a registration, or in its
/// metadata document.
#[derive(Clone, Copy)]
pub enum RegistrationRules<'a> {
    /// A value that is not supported rejects the client, except for grant types. All redirect URIs
    /// must be `https`, or `http` with a loopback host.
    Strict,
    /// Values are reduced to what a server for the authorization code grant offers, and the
    /// response states the result (RFC 7591 section 3.2.1):
    ///
    /// - Redirect URIs are accepted if one of them is usable. See [`RedirectUri::parse_registered`].
    /// - The grant types are `authorization_code` and `refresh_token`.
    /// - A client whose redirect URIs are all native is public (RFC 8252 section 8.4). Others have
    ///   the requested authentication method, or `none` if it is not supported.
    /// - The name is shortened, and deceptive characters are removed.
    /// - `jwks_uri` of a registration is not read. That of a document is fetched.
    ///
    /// [`RedirectUri::parse_registered`]: crate::client::RedirectUri::parse_registered
    Lenient(&'a dyn RedirectPolicy),
}

impl RegistrationRules<'_> {
    pub(super) const fn is_lenient(self) -> bool {
        matches!(self, Self::Lenient(_))
    }
}

impl fmt::Debug for RegistrationRules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "Strict",
            Self::Lenient(_) => "Lenient",
        })
    }
}
