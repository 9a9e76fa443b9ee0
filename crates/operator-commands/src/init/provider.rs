//! Providers whose tokens need settings of their own, and what the configuration says about them.

use portcullis_config::plan::provider_of_issuer;
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::Issuer;

/// A known provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    Entra,
    Okta,
    Auth0,
    Keycloak,
    Authentik,
}

/// The provider of an issuer, by its URL.
pub(super) fn of(issuer: &Issuer) -> Option<Provider> {
    let path = issuer.url().path();
    match provider_of_issuer(issuer.url()) {
        Some(ProviderKind::Entra) => Some(Provider::Entra),
        Some(ProviderKind::Okta) => Some(Provider::Okta),
        Some(ProviderKind::Auth0) => Some(Provider::Auth0),
        _ if path.contains("/realms/") => Some(Provider::Keycloak),
        _ if path.starts_with("/application/o/") => Some(Provider::Authentik),
        _ => None,
    }
}

impl Provider {
    pub(super) fn guide(self) -> &'static str {
        match self {
            Self::Entra => "docs/guides/entra-id.md",
            Self::Okta => "docs/guides/okta.md",
            Self::Auth0 => "docs/guides/auth0.md",
            Self::Keycloak => "docs/use/keycloak.md",
            Self::Authentik => "docs/guides/authentik.md",
        }
    }

    /// The comment in the table of the issuer, with the line to adapt. `resource` is the URL of the
    /// endpoint.
    pub(super) fn comment(self, resource: &str) -> String {
        let lines = match self {
            Self::Entra => "Microsoft Entra ID writes the application's ID into `aud`, not the URL of the resource. Uncomment this with\n\
                 the ID of your API, and write scopes_supported below in the long form, \"api://<ID>/<scope>\":\n\
                 audiences = [\"11112222-bbbb-3333-cccc-4444dddd5555\"]"
                .to_owned(),
            Self::Okta => format!("Okta: set the audience of this authorization server to\n{resource}"),
            Self::Auth0 => format!(
                "Auth0: create an API with the identifier\n{resource}\n\
                 With role-based access control, the scopes are in another claim. Then uncomment:\n\
                 scope_claims = [\"permissions\"]"
            ),
            Self::Keycloak => {
                format!("Keycloak: add to a default client scope an audience mapper with\n{resource}")
            }
            Self::Authentik => format!("Authentik: add a scope mapping with the audience\n{resource}"),
        };
        let lines = lines
            .lines()
            .map(|line| format!("# {line}\n"))
            .collect::<String>();
        format!("# See {}.\n{lines}", self.guide())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn issuers_have_their_provider() {
        for (issuer, provider) in [
            (
                "https://login.microsoftonline.com/x/v2.0",
                Some(Provider::Entra),
            ),
            (
                "https://example.okta.com/oauth2/default",
                Some(Provider::Okta),
            ),
            (
                "https://example.okta-gov.com/oauth2/default",
                Some(Provider::Okta),
            ),
            ("https://example.eu.auth0.com/", Some(Provider::Auth0)),
            ("https://a.example/realms/prod", Some(Provider::Keycloak)),
            (
                "https://a.example/application/o/mcp/",
                Some(Provider::Authentik),
            ),
            ("https://notokta.com/oauth2/default", None),
            ("https://okta.com.a.example/oauth2/default", None),
            ("https://a.example", None),
        ] {
            assert_eq!(of(&Issuer::parse(issuer).unwrap()), provider, "{issuer}");
        }
    }

    #[test]
    fn the_guides_exist() {
        use Provider::{Auth0, Authentik, Entra, Keycloak, Okta};
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for provider in [Entra, Okta, Auth0, Keycloak, Authentik] {
            assert!(
                root.join(provider.guide()).is_file(),
                "{}",
                provider.guide()
            );
            assert!(
                provider
                    .comment("https://a.example/mcp")
                    .lines()
                    .all(|line| line.starts_with("# "))
            );
        }
    }
}
