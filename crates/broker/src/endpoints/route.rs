//! [`Route`]: the endpoints and their paths.

use http::Method;

use crate::{
    Broker,
    settings::{CALLBACK_PATH, LOGOUT_PATH},
};

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The metadata document (RFC 8414 section 3).
    Metadata,
    /// The public keys (RFC 7517 section 5).
    Keys,
    /// The authorization endpoint (RFC 6749 section 3.1).
    Authorize,
    /// The answer of a user to a consent page.
    Consent,
    /// The redirect URI at the provider with this position.
    Callback(usize),
    /// The token endpoint (RFC 6749 section 3.2).
    Token,
    /// The registration endpoint (RFC 7591 section 3).
    Register,
    /// The revocation endpoint (RFC 7009 section 2).
    Revoke,
    /// The introspection endpoint (RFC 7662 section 2).
    Introspect,
    /// The back-channel logout URI at the provider with this position (OpenID Connect Back-Channel
    /// Logout 1.0 section 2.2).
    Logout(usize),
}

impl Route {
    /// The beginning of the path of every endpoint.
    pub(crate) const PREFIX: &'static str = "/oauth/";

    /// Returns the path of an endpoint that does not belong to a provider.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Metadata => "/.well-known/oauth-authorization-server",
            Self::Keys => "/oauth/jwks",
            Self::Authorize => "/oauth/authorize",
            Self::Consent => "/oauth/consent",
            Self::Callback(_) => CALLBACK_PATH,
            Self::Token => "/oauth/token",
            Self::Register => "/oauth/register",
            Self::Revoke => "/oauth/revoke",
            Self::Introspect => "/oauth/introspect",
            Self::Logout(_) => LOGOUT_PATH,
        }
    }

    pub(super) const fn methods(self) -> &'static [Method] {
        match self {
            Self::Metadata | Self::Keys => &[Method::GET, Method::HEAD],
            Self::Authorize | Self::Callback(_) => &[Method::GET],
            Self::Consent
            | Self::Token
            | Self::Register
            | Self::Revoke
            | Self::Introspect
            | Self::Logout(_) => &[Method::POST],
        }
    }

    /// Returns the value of `Allow`.
    pub(super) const fn allowed_methods(self) -> &'static str {
        match self {
            Self::Metadata | Self::Keys => "GET, HEAD",
            Self::Authorize | Self::Callback(_) => "GET",
            _ => "POST",
        }
    }

    /// Returns whether scripts of other origins may use the endpoint, always without credentials
    /// (AU11).
    pub(super) const fn allows_cross_origin(self) -> bool {
        matches!(
            self,
            Self::Metadata | Self::Keys | Self::Token | Self::Register | Self::Revoke
        )
    }
}

impl Broker {
    /// Returns the endpoint with this path, which is compared byte for byte.
    pub(super) fn route(&self, path: &str) -> Option<Route> {
        const FIXED: [Route; 7] = [
            Route::Keys,
            Route::Authorize,
            Route::Consent,
            Route::Token,
            Route::Register,
            Route::Revoke,
            Route::Introspect,
        ];
        if let Some(route) = FIXED.into_iter().find(|route| route.path() == path) {
            let is_offered = match route {
                Route::Register => self.settings.clients.registration,
                Route::Introspect => !self.settings.introspection_clients.is_empty(),
                _ => true,
            };
            return is_offered.then_some(route);
        }
        if self.metadata_paths.iter().any(|other| **other == *path) {
            return Some(Route::Metadata);
        }
        let provider = |name: &str| {
            let mut providers = self.settings.providers.iter();
            providers.position(|provider| *provider.settings.name == *name)
        };
        if let Some(name) = path.strip_prefix(Route::Callback(0).path()) {
            return provider(name).map(Route::Callback);
        }
        let name = path.strip_prefix(Route::Logout(0).path())?;
        provider(name).map(Route::Logout)
    }
}
