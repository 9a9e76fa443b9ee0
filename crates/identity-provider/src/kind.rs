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
}
