//! [`Source`]: the identity provider at which users sign in, from what a person enters.

use portcullis_config::{
    plan::{provider_of_issuer, redirect_uri_setting},
    shown_url,
};
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::syntax::{is_loopback, is_uuid};
use url::{Position, Url};

/// The host of Entra ID's issuers of version 2.0 in the global cloud.
const ENTRA: &str = "login.microsoftonline.com";
/// The hosts of Entra ID's issuers, each with that of version 2.0 in the same cloud.
const ENTRA_HOSTS: [(&str, &str); 5] = [
    (ENTRA, ENTRA),
    ("sts.windows.net", ENTRA),
    ("login.microsoftonline.us", "login.microsoftonline.us"),
    (
        "login.partner.microsoftonline.cn",
        "login.partner.microsoftonline.cn",
    ),
    ("sts.chinacloudapi.cn", "login.partner.microsoftonline.cn"),
];

/// The identity provider of a `[[broker.provider]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) kind: ProviderKind,
    /// Entra only.
    pub(super) tenant: Option<String>,
    /// `None` if the kind has one.
    pub(super) issuer: Option<String>,
}

impl Source {
    /// Returns the provider of a kind with an issuer of its own.
    pub(super) fn of_kind(kind: ProviderKind) -> Self {
        Self {
            kind,
            tenant: None,
            issuer: None,
        }
    }

    /// Returns the provider of a kind with this issuer. Fails with the reason if the URL does not
    /// name the tenant of Entra ID.
    pub(super) fn new(kind: ProviderKind, issuer: &str) -> Result<Self, String> {
        let mut source = Self::of_kind(kind);
        let shown = shown_url(issuer);
        let url = Url::parse(issuer).map_err(|error| format!("{shown:?}: {error}"))?;
        let is_own = kind_of(&url) == kind;
        source.issuer = match kind {
            ProviderKind::Google | ProviderKind::GitHub if is_own => None,
            ProviderKind::GitHub => Some(url[..Position::BeforePath].to_owned()),
            ProviderKind::Entra => {
                let tenant = tenant(&url).ok_or_else(|| {
                    format!(
                        "{shown:?} does not name your tenant; write its ID, a UUID that the overview of Entra ID shows: \
                         https://{ENTRA}/<tenant ID>/v2.0"
                    )
                })?;
                let issuer = match entra_host(&url) {
                    Some(ENTRA) => None,
                    Some(host) => Some(format!("https://{host}/{tenant}/v2.0")),
                    None => Some(issuer.to_owned()),
                };
                source.tenant = Some(tenant);
                issuer
            }
            // A parsed URL has the slash, and Okta's issuers do not.
            ProviderKind::Okta => Some(issuer.trim_end_matches('/').to_owned()),
            _ => Some(issuer.to_owned()),
        };
        Ok(source)
    }

    /// Returns where the redirect URI is registered, for people.
    pub(super) fn redirect_uri_setting(&self) -> String {
        let issuer = self.issuer.as_deref();
        let issuer = issuer.and_then(|issuer| Url::parse(issuer).ok());
        redirect_uri_setting(self.kind, issuer.as_ref())
    }
}

/// Returns the kind of provider of an issuer, by its URL.
pub(super) fn kind_of(issuer: &Url) -> ProviderKind {
    provider_of_issuer(issuer).unwrap_or_else(|| {
        if issuer.path().contains("/realms/") {
            ProviderKind::Keycloak
        } else {
            ProviderKind::Oidc
        }
    })
}

/// Returns the kind of provider if clients cannot register at this issuer, even if its metadata
/// says otherwise.
pub(super) fn kind_without_registration(issuer: &Url) -> Option<ProviderKind> {
    let kind = kind_of(issuer);
    let is_without = match kind {
        ProviderKind::GitHub
        | ProviderKind::Google
        | ProviderKind::Entra
        | ProviderKind::Cognito => true,
        // Okta's authorization server for its own API.
        ProviderKind::Okta => issuer.path().trim_end_matches('/').is_empty(),
        _ => false,
    };
    (is_without && !is_loopback(issuer)).then_some(kind)
}

/// Returns the tenant in the URL of an issuer of Entra ID, if it is a UUID.
pub(super) fn tenant(issuer: &Url) -> Option<String> {
    let mut segments = issuer.path_segments()?;
    let tenant = segments.find(|segment| !segment.is_empty())?;
    let tenant = tenant.to_ascii_lowercase();
    is_uuid(&tenant).then_some(tenant)
}

/// Returns the host of version 2.0 in the cloud of an issuer of Entra ID.
fn entra_host(issuer: &Url) -> Option<&'static str> {
    let host = issuer.host_str()?.trim_end_matches('.');
    let mut hosts = ENTRA_HOSTS.into_iter();
    hosts
        .find(|(known, _)| *known == host)
        .map(|(_, version_2)| version_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn providers_are_recognized_by_their_urls() {
        use ProviderKind::{Auth0, Cognito, Entra, GitHub, Google, Keycloak, Oidc, Okta};
        for (issuer, kind, never_registers) in [
            ("https://github.com/login/oauth", GitHub, true),
            ("https://accounts.google.com/", Google, true),
            ("https://login.microsoftonline.com/common/v2.0", Entra, true),
            (
                "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_A",
                Cognito,
                true,
            ),
            (
                "https://issuer-cognito-idp.eu-central-1.amazonaws.com/eu-central-1_A",
                Cognito,
                true,
            ),
            (
                "https://cognito-idp.cn-north-1.amazonaws.com.cn/cn-north-1_A",
                Cognito,
                true,
            ),
            ("https://example.okta.com", Okta, true),
            ("https://example.okta-gov.com", Okta, true),
            ("https://example.okta.mil/oauth2/default", Okta, false),
            ("https://example.okta.com/oauth2/default", Okta, false),
            ("https://example.eu.auth0.com/", Auth0, false),
            ("https://auth.example.com/realms/prod", Keycloak, false),
            ("https://auth.example.com", Oidc, false),
            ("https://github.com.a.example", Oidc, false),
            ("https://notokta.com", Oidc, false),
        ] {
            assert_eq!(kind_of(&url(issuer)), kind, "{issuer}");
            assert_eq!(
                kind_without_registration(&url(issuer)),
                never_registers.then_some(kind),
                "{issuer}"
            );
        }
    }

    #[test]
    fn the_tenant_is_that_of_the_url() {
        for (entered, issuer) in [
            (
                format!("https://login.microsoftonline.com/{TENANT}/v2.0"),
                None,
            ),
            (
                format!(
                    "https://login.microsoftonline.com/{TENANT}/v2.0/.well-known/openid-configuration"
                ),
                None,
            ),
            (format!("https://sts.windows.net/{TENANT}/"), None),
            (
                format!("https://login.microsoftonline.us/{TENANT}"),
                Some(format!("https://login.microsoftonline.us/{TENANT}/v2.0")),
            ),
            (
                format!("https://sts.chinacloudapi.cn/{TENANT}/"),
                Some(format!(
                    "https://login.partner.microsoftonline.cn/{TENANT}/v2.0"
                )),
            ),
            (
                format!("http://127.0.0.1:9000/{TENANT}/v2.0"),
                Some(format!("http://127.0.0.1:9000/{TENANT}/v2.0")),
            ),
        ] {
            let source = Source::new(ProviderKind::Entra, &entered).unwrap();
            assert_eq!(source.tenant.as_deref(), Some(TENANT), "{entered}");
            assert_eq!(source.issuer, issuer, "{entered}");
        }
        let shared = Source::new(
            ProviderKind::Entra,
            "https://login.microsoftonline.com/common/v2.0",
        );
        assert!(shared.unwrap_err().contains("<tenant ID>"));
    }

    /// The issuers of Google and GitHub are known, and an imitation has its own.
    #[test]
    fn known_issuers_are_left_out() {
        let issuer = |kind, text: &str| Source::new(kind, text).unwrap().issuer;
        let (google, github) = (ProviderKind::Google, ProviderKind::GitHub);
        assert_eq!(issuer(google, "https://accounts.google.com"), None);
        assert_eq!(issuer(github, "https://github.com/login/oauth"), None);
        assert_eq!(
            issuer(github, "https://github.example.com/login/oauth").as_deref(),
            Some("https://github.example.com")
        );
        assert_eq!(
            issuer(google, "http://127.0.0.1:9000").as_deref(),
            Some("http://127.0.0.1:9000")
        );
    }
    /// The redirect URI is registered at the provider's own host, or in its cloud.
    #[test]
    fn the_setting_is_at_the_host_of_the_provider() {
        for (kind, issuer, setting) in [
            (
                ProviderKind::GitHub,
                "https://github.com/login/oauth".to_owned(),
                "https://github.com/settings/developers,",
            ),
            (
                ProviderKind::GitHub,
                "https://github.example.com/login/oauth".to_owned(),
                "https://github.example.com/settings/developers,",
            ),
            (
                ProviderKind::Entra,
                format!("https://login.microsoftonline.com/{TENANT}/v2.0"),
                "https://entra.microsoft.com: App registrations,",
            ),
            (
                ProviderKind::Entra,
                format!("https://login.microsoftonline.us/{TENANT}/v2.0"),
                "https://portal.azure.us: App registrations,",
            ),
        ] {
            let source = Source::new(kind, &issuer).unwrap();
            let actual = source.redirect_uri_setting();
            assert!(actual.starts_with(setting), "{issuer}: {actual}");
        }
    }
}
