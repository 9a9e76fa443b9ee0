use http::Method;
use portcullis_metadata::Issuer;

/// What can be asked for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A page for somebody who opens the issuer's address.
    Front,
    /// The metadata document, in any of its places.
    Metadata,
    Jwks,
    Register,
    Authorize,
    /// Where the consent page posts its answer. It is below `Authorize`, so that the cookie's path can be that one.
    Consent,
    Token,
    /// Where protected resources ask about tokens.
    Introspect,
    /// Where clients give tokens up.
    Revoke,
    /// Where tests have the signing keys replaced.
    RotateKeys,
    /// Where tests script faults.
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

    /// What a path names. Paths are compared as they are, without decoding.
    pub(crate) fn find(path: &str, issuer: &Issuer, issuer_path: &str) -> Option<Self> {
        if path.strip_prefix(issuer_path).is_some_and(|rest| matches!(rest, "" | "/")) {
            return Some(Self::Front);
        }
        if let Some(endpoint) = Self::NAMED.into_iter().find(|endpoint| endpoint.path(issuer_path) == path) {
            return Some(endpoint);
        }
        let places = portcullis_metadata::authorization_server_urls(issuer);
        places.iter().any(|place| place.path() == path).then_some(Self::Metadata)
    }

    /// Its path below that of the issuer.
    pub(crate) fn path(self, issuer_path: &str) -> String {
        let name = match self {
            Self::Front => "",
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

    /// The methods it answers, `OPTIONS` apart.
    pub(crate) const fn methods(self) -> &'static [Method] {
        match self {
            Self::Front | Self::Metadata | Self::Jwks => &[Method::GET, Method::HEAD],
            Self::Authorize => &[Method::GET],
            Self::Register | Self::Consent | Self::Token | Self::Introspect | Self::Revoke | Self::RotateKeys => {
                &[Method::POST]
            }
            Self::Faults => &[Method::POST, Method::DELETE],
        }
    }

    /// Whether it is there for tests alone, where the settings have it.
    pub(crate) const fn is_admin(self) -> bool {
        matches!(self, Self::RotateKeys | Self::Faults)
    }

    /// Whether scripts of other origins may use it. Pages that act for a person are not among these, nor is what only
    /// protected resources use.
    pub(crate) const fn is_for_scripts(self) -> bool {
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
        assert_eq!(find("/", ""), Some(Endpoint::Front));
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
        assert_eq!(find("/realms/dev", path), Some(Endpoint::Front));
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
