//! [`ProviderKind`]: the providers that are known.

/// A kind of provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderKind {
    /// Microsoft Entra ID.
    Entra,
    /// Google.
    Google,
    /// GitHub, which has no ID tokens: the user comes from its API.
    GitHub,
    /// Okta.
    Okta,
    /// Auth0.
    Auth0,
    /// Keycloak.
    Keycloak,
    /// Amazon Cognito.
    Cognito,
    /// Any other OpenID provider.
    Oidc,
}

impl ProviderKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Entra,
        Self::Google,
        Self::GitHub,
        Self::Okta,
        Self::Auth0,
        Self::Keycloak,
        Self::Cognito,
        Self::Oidc,
    ];

    /// Parses the name of a kind. Returns `None` for other names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entra => "entra",
            Self::Google => "google",
            Self::GitHub => "github",
            Self::Okta => "okta",
            Self::Auth0 => "auth0",
            Self::Keycloak => "keycloak",
            Self::Cognito => "cognito",
            Self::Oidc => "oidc",
        }
    }

    /// Returns the name for people.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Entra => "Microsoft",
            Self::Google => "Google",
            Self::GitHub => "GitHub",
            Self::Okta => "Okta",
            Self::Auth0 => "Auth0",
            Self::Keycloak => "Keycloak",
            Self::Cognito => "Amazon Cognito",
            Self::Oidc => "your identity provider",
        }
    }

    /// Returns where its operators register the redirect URI of an application, for people. `pages`
    /// is the origin of another cloud or server with these pages; `None` means the public one.
    pub fn redirect_uri_setting(self, pages: Option<&str>) -> String {
        let (public_pages, place) = match self {
            Self::Entra => (
                "https://entra.microsoft.com",
                ": App registrations, your application, Authentication, platform Web",
            ),
            Self::Google => (
                "https://console.cloud.google.com",
                "/auth/clients: a client of type Web application, Authorized redirect URIs",
            ),
            Self::GitHub => (
                "https://github.com",
                "/settings/developers, or the settings of your organization: Authorization callback URL",
            ),
            Self::Okta => (
                "Okta's Admin Console",
                ": Applications, an OIDC Web Application, Sign-in redirect URIs",
            ),
            Self::Auth0 => (
                "https://manage.auth0.com",
                ": Applications, a Regular Web Application, Allowed Callback URLs",
            ),
            Self::Keycloak => (
                "Keycloak's Admin Console",
                ": Clients, a client with Client authentication, Valid redirect URIs",
            ),
            Self::Cognito => (
                "https://console.aws.amazon.com",
                "/cognito: your user pool, App clients, Login pages, Allowed callback URLs",
            ),
            Self::Oidc => (
                "the provider's settings of your application",
                ", a confidential web client",
            ),
        };
        format!("{}{place}", pages.unwrap_or(public_pages))
    }

    /// Returns whether the provider can tell an application that a user signed out (OpenID Connect
    /// Back-Channel Logout 1.0), as far as its documentation says.
    pub const fn may_send_logout_tokens(self) -> bool {
        matches!(self, Self::Auth0 | Self::Keycloak | Self::Oidc)
    }
}
