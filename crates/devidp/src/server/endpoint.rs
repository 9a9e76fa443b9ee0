//! [`Endpoint`]: the endpoints, their paths and methods.

use http::Method;
use portcullis_metadata::Issuer;

/// An endpoint of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The page at the issuer's address.
    Home,
    /// The metadata document at any of its URLs.
    Metadata,
    Jwks,
    Register,
    Authorize,
    /// The target of the consent form. Its path is below `Authorize`, which is the path of the consent cookie.
    Consent,
    Token,
    /// The introspection endpoint.
    Introspect,
    /// The revocation endpoint.
    Revoke,
    /// The admin endpoint that rotates the signing keys.
    RotateKeys,
    /// The admin endpoint that scripts faults.
    Faults,
}

impl Endpoint {
    const NAMED: [Self; 9] = [
        Self::Jwks,
        Self::Register,
        Self::Authorize,
        Self::Consent,
        Self::Token,
        Self::Introspect,
        Self::Revoke,
        Self::RotateKeys,
        Self::Faults,
    ];

    /// Returns the endpoint for a path. Paths are compared without percent-decoding.
    pub(crate) fn find(path: &str, issuer: &Issuer, issuer_path: &str) -> Option<Self> {
        if path.strip_prefix(issuer_path).is_some_and(|rest| matches!(rest, "" | "/")) {
            return Some(Self::Home);
        }
        if let Some(endpoint) = Self::NAMED.into_iter().find(|endpoint| endpoint.path(issuer_path) == path) {
            return Some(endpoint);
        }
        let metadata_urls = portcullis_metadata::authorization_server_urls(issuer);
        metadata_urls.iter().any(|url| url.path() == path).then_some(Self::Metadata)
    }

    /// Returns the path, which is below the issuer path.
    pub(crate) fn path(self, issuer_path: &str) -> String {
        let name = match self {
            Self::Home => "",
            Self::Metadata => ".well-known/openid-configuration",
            Self::Jwks => "jwks",
            Self::Register => "register",
            Self::Authorize => "authorize",
            Self::Consent => "authorize/consent",
            Self::Token => "token",
            Self::Introspect => "introspect",
            Self::Revoke => "revoke",
            Self::RotateKeys => "admin/rotate",
            Self::Faults => "admin/faults",
        };
        format!("{issuer_path}/{name}")
    }

    /// Returns the supported methods, without `OPTIONS`.
    pub(crate) const fn methods(self) -> &'static [Method] {
        match self {
            Self::Home | Self::Metadata | Self::Jwks => &[Method::GET, Method::HEAD],
            Self::Authorize => &[Method::GET],
            Self::Register | Self::Consent | Self::Token | Self::Introspect | Self::Revoke | Self::RotateKeys => {
                &[Method::POST]
            }
            Self::Faults => &[Method::POST, Method::DELETE],
        }
    }

    /// Returns whether this is an admin endpoint, which exists only if the settings enable it.
    pub(crate) const fn is_admin(self) -> bool {
        matches!(self, Self::RotateKeys | Self::Faults)
    }

    /// Returns whether scripts of other origins may use the endpoint. Pages for the user and the introspection endpoint are
    /// excluded.
    pub(crate) const fn allows_cross_origin(self) -> bool {
        matches!(self, Self::Metadata | Self::Jwks | Self::Register | Self::Token | Self::Revoke)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str, issuer_path: &str) -> Option<Endpoint> {
        let issuer = Issuer::parse(&format!("http://127.0.0.1:9000{issuer_path}")).unwrap();
        Endpoint::find(path, &issuer, issuer_path)
    }

    #[test]
    fn paths_without_an_issuer_path() {
        assert_eq!(find("/", ""), Some(Endpoint::Home));
        assert_eq!(find("/token", ""), Some(Endpoint::Token));
        assert_eq!(find("/.well-known/oauth-authorization-server", ""), Some(Endpoint::Metadata));
        assert_eq!(find("/.well-known/openid-configuration", ""), Some(Endpoint::Metadata));
        for none in ["/token/", "//token", "/%74oken", "/Token", "/.well-known/openid-configuration/", "/x"] {
            assert_eq!(find(none, ""), None, "{none}");
        }
    }

    #[test]
    fn paths_below_an_issuer_path() {
        let path = "/realms/dev";
        assert_eq!(find("/realms/dev", path), Some(Endpoint::Home));
        assert_eq!(find("/realms/dev/authorize", path), Some(Endpoint::Authorize));
        for metadata in [
            "/.well-known/oauth-authorization-server/realms/dev",
            "/.well-known/openid-configuration/realms/dev",
            "/realms/dev/.well-known/openid-configuration",
        ] {
            assert_eq!(find(metadata, path), Some(Endpoint::Metadata), "{metadata}");
        }
        for none in ["/", "/authorize", "/.well-known/oauth-authorization-server", "/realms/develop/token"] {
            assert_eq!(find(none, path), None, "{none}");
        }
    }
}
