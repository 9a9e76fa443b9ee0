mod auth0;
mod authentik;
mod cognito;
mod entra;
pub(crate) mod github;
mod google;
mod keycloak;
mod okta;
pub(crate) mod profile;

pub use self::profile::Difference;
use crate::providers::profile::{Profile, RegistrationRule};

/// A provider to imitate: the server rejects, omits and renames the same things as the provider.
///
/// [`differences`](Self::differences) lists what is imitated. Everything else stays as without a
/// provider, and the paths of the endpoints are this server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Provider {
    /// Microsoft Entra ID, for an API that accepts tokens of version 2.0.
    Entra,
    /// Microsoft Entra ID, for an API that accepts tokens of version 1.0, which have another issuer
    /// and other claims.
    EntraV1,
    /// Google.
    Google,
    /// GitHub, for an OAuth app.
    GitHub,
    /// GitHub, for a GitHub App whose user access tokens expire.
    GitHubApp,
    /// Okta, for a custom authorization server.
    Okta,
    /// Auth0, without the compatibility profile for the `resource` parameter.
    Auth0,
    /// Keycloak 26, without its feature `resource-indicators`.
    Keycloak,
    /// Authentik 2025.10 or later, for a provider with its own issuer and a signing key.
    Authentik,
    /// Amazon Cognito, for a user pool with a domain.
    Cognito,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 10] = [
        Self::Entra,
        Self::EntraV1,
        Self::Google,
        Self::GitHub,
        Self::GitHubApp,
        Self::Okta,
        Self::Auth0,
        Self::Keycloak,
        Self::Authentik,
        Self::Cognito,
    ];

    /// Returns the provider's name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entra => "entra",
            Self::EntraV1 => "entra-v1",
            Self::Google => "google",
            Self::GitHub => "github",
            Self::GitHubApp => "github-app",
            Self::Okta => "okta",
            Self::Auth0 => "auth0",
            Self::Keycloak => "keycloak",
            Self::Authentik => "authentik",
            Self::Cognito => "cognito",
        }
    }

    /// Returns the differences that the server imitates.
    pub fn differences(self) -> impl Iterator<Item = &'static Difference> {
        self.profile().differences.iter().copied().flatten()
    }

    /// Returns the prefix of scopes in requests and responses, if the provider has one: the
    /// identifier of the API.
    pub fn scope_prefix(self) -> Option<&'static str> {
        self.profile().scope_prefix
    }

    /// Returns whether clients can register. At other providers they must be in the settings.
    pub fn has_registration(self) -> bool {
        matches!(
            self.profile().registration,
            RegistrationRule::Settings | RegistrationRule::Strict
        )
    }

    /// Returns what the server does differently.
    pub(crate) const fn profile(self) -> &'static Profile {
        match self {
            Self::Entra => &entra::V2,
            Self::EntraV1 => &entra::V1,
            Self::Google => &google::PROFILE,
            Self::GitHub => &github::OAUTH_APP,
            Self::GitHubApp => &github::GITHUB_APP,
            Self::Okta => &okta::PROFILE,
            Self::Auth0 => &auth0::PROFILE,
            Self::Keycloak => &keycloak::PROFILE,
            Self::Authentik => &authentik::PROFILE,
            Self::Cognito => &cognito::PROFILE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K1: every difference has a reference and is listed in the documentation, under its provider.
    #[test]
    fn every_difference_is_documented() {
        let page = include_str!("../../../docs/use/development-server.md");
        for provider in Provider::ALL {
            assert!(provider.differences().next().is_some());
            for Difference {
                summary,
                references,
            } in provider.differences()
            {
                let row = format!(
                    "| {} | {summary} | {} |",
                    provider.as_str(),
                    references.join(", ")
                );
                assert!(
                    page.contains(&row),
                    "docs/use/development-server.md needs the row\n{row}"
                );
                let is_reference =
                    |text: &&str| text.starts_with("https://") || text.starts_with("measured");
                assert!(!references.is_empty(), "{references:?}");
                assert!(references.iter().all(is_reference), "{references:?}");
            }
        }
        let rows = page.lines().filter(|line| {
            Provider::ALL
                .iter()
                .any(|p| line.starts_with(&format!("| {} | ", p.as_str())))
        });
        let documented = rows.count();
        assert_eq!(
            documented,
            Provider::ALL
                .iter()
                .map(|provider| provider.differences().count())
                .sum::<usize>()
        );
    }
}
