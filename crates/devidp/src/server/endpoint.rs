use http::Method;

/// An endpoint of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The page at the issuer's address.
    Home,
    /// The metadata document at any of its URLs.
    Metadata,
    Jwks,
    Register,
    /// The registration of a client (RFC 7592), whose identifier is the last segment of the path.
    Client,
    Authorize,
    /// The device authorization endpoint (RFC 8628 section 3.1).
    DeviceAuthorization,
    /// The page on which the user enters a user code.
    Device,
    /// The consent page for a user code. Its path is below `Authorize`, which is the path of the
    /// consent cookie.
    DeviceConsent,
    /// The target of the consent form. Its path is below `Authorize`, which is the path of the
    /// consent cookie.
    Consent,
    Token,
    /// The introspection endpoint.
    Introspect,
    /// The revocation endpoint.
    Revoke,
    /// The userinfo endpoint (OpenID Connect Core section 5.3).
    UserInfo,
    /// The API of GitHub, whose paths are not below the issuer path.
    GitHubApi,
    /// The admin endpoint that rotates the signing keys.
    RotateKeys,
    /// The admin endpoint that scripts faults.
    Faults,
    /// The admin endpoint that forgets registered clients.
    ForgetClients,
    /// The admin endpoint that answers device authorizations.
    AnswerDevice,
    /// The admin endpoint that removes and restores users.
    ChangeUser,
    /// The admin endpoint that logs users out.
    LogOut,
}

impl Endpoint {
    const NAMED: [Self; 17] = [
        Self::Jwks,
        Self::Register,
        Self::Authorize,
        Self::DeviceAuthorization,
        Self::Device,
        Self::DeviceConsent,
        Self::Consent,
        Self::Token,
        Self::Introspect,
        Self::Revoke,
        Self::UserInfo,
        Self::RotateKeys,
        Self::Faults,
        Self::ForgetClients,
        Self::AnswerDevice,
        Self::ChangeUser,
        Self::LogOut,
    ];

    /// Returns the endpoint for a path that is not one of a metadata document. Paths are compared
    /// without percent-decoding.
    pub(crate) fn find(path: &str, issuer_path: &str) -> Option<Self> {
        if path
            .strip_prefix(issuer_path)
            .is_some_and(|rest| matches!(rest, "" | "/"))
        {
            return Some(Self::Home);
        }
        if let Some(endpoint) = Self::NAMED
            .into_iter()
            .find(|endpoint| endpoint.path(issuer_path) == path)
        {
            return Some(endpoint);
        }
        Self::client_id(path, issuer_path).map(|_| Self::Client)
    }

    /// Returns the client identifier in the path of [`Client`](Self::Client).
    pub(crate) fn client_id<'a>(path: &'a str, issuer_path: &str) -> Option<&'a str> {
        let id = path.strip_prefix(issuer_path)?.strip_prefix("/register/")?;
        (!id.is_empty() && !id.contains('/')).then_some(id)
    }

    /// Returns the path, which is below the issuer path.
    pub(crate) fn path(self, issuer_path: &str) -> String {
        let name = match self {
            Self::Home => "",
            Self::Metadata => ".well-known/openid-configuration",
            Self::Client => "register/",
            Self::DeviceAuthorization => "device_authorization",
            Self::Device => "device",
            Self::DeviceConsent => "authorize/device",
            Self::Jwks => "jwks",
            Self::Register => "register",
            Self::Authorize => "authorize",
            Self::Consent => "authorize/consent",
            Self::Token => "token",
            Self::Introspect => "introspect",
            Self::Revoke => "revoke",
            Self::UserInfo => "userinfo",
            Self::GitHubApi => "user",
            Self::RotateKeys => "admin/rotate",
            Self::Faults => "admin/faults",
            Self::ForgetClients => "admin/forget",
            Self::AnswerDevice => "admin/device",
            Self::ChangeUser => "admin/user",
            Self::LogOut => "admin/logout",
        };
        format!("{issuer_path}/{name}")
    }

    /// Returns the supported methods, without `OPTIONS`.
    pub(crate) const fn methods(self) -> &'static [Method] {
        match self {
            Self::Home | Self::Metadata | Self::Jwks => &[Method::GET, Method::HEAD],
            Self::Authorize | Self::Device | Self::DeviceConsent => &[Method::GET],
            Self::Client => &[Method::GET, Method::PUT, Method::DELETE],
            Self::Register
            | Self::DeviceAuthorization
            | Self::Consent
            | Self::Token
            | Self::Introspect
            | Self::Revoke
            | Self::RotateKeys
            | Self::ForgetClients
            | Self::AnswerDevice
            | Self::ChangeUser
            | Self::LogOut => &[Method::POST],
            Self::UserInfo => &[Method::GET, Method::POST],
            Self::GitHubApi => &[Method::GET, Method::DELETE],
            Self::Faults => &[Method::POST, Method::DELETE],
        }
    }

    /// Returns whether this is an admin endpoint, which exists only if the settings enable it.
    pub(crate) const fn is_admin(self) -> bool {
        matches!(
            self,
            Self::RotateKeys
                | Self::Faults
                | Self::ForgetClients
                | Self::AnswerDevice
                | Self::ChangeUser
                | Self::LogOut
        )
    }

    /// Returns whether scripts of other origins may use the endpoint. Pages for the user and the
    /// introspection endpoint are excluded.
    pub(crate) const fn allows_cross_origin(self) -> bool {
        matches!(
            self,
            Self::Metadata
                | Self::Jwks
                | Self::Register
                | Self::Client
                | Self::DeviceAuthorization
                | Self::Token
                | Self::Revoke
                | Self::UserInfo
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_an_issuer_path() {
        let find = |path| Endpoint::find(path, "");
        assert_eq!(find("/"), Some(Endpoint::Home));
        assert_eq!(find("/token"), Some(Endpoint::Token));
        assert_eq!(find("/register/abc"), Some(Endpoint::Client));
        for none in [
            "/token/",
            "//token",
            "/%74oken",
            "/Token",
            "/.well-known/x",
            "/x",
            "/register/",
            "/register/a/b",
        ] {
            assert_eq!(find(none), None, "{none}");
        }
    }

    #[test]
    fn paths_below_an_issuer_path() {
        let path = "/realms/dev";
        let find = |requested| Endpoint::find(requested, path);
        assert_eq!(find("/realms/dev"), Some(Endpoint::Home));
        assert_eq!(find("/realms/dev/authorize"), Some(Endpoint::Authorize));
        assert_eq!(
            Endpoint::client_id("/realms/dev/register/abc", path),
            Some("abc")
        );
        for none in ["/", "/authorize", "/register/abc", "/realms/develop/token"] {
            assert_eq!(find(none), None, "{none}");
        }
    }
}
