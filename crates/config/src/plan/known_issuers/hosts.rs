//! The hosts of well-known providers. A custom domain belongs to none of them.

use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::syntax::is_loopback;
use url::Url;

use crate::plan::entra;

/// The domains of Okta's organizations.
const OKTA: &[&str] = &[
    "okta.com",
    "oktapreview.com",
    "okta-emea.com",
    "okta-gov.com",
    "okta.mil",
];
/// The domain of Auth0's tenants.
const AUTH0: &[&str] = &["auth0.com"];
/// The domain of the sign-in pages of Cognito's user pools.
const COGNITO_PAGES: &[&str] = &["amazoncognito.com"];
/// The first labels and the domains of the hosts that issue Cognito's tokens:
/// <https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_IssuerConfigurationType.html>.
const COGNITO_ISSUERS: &[&str] = &["cognito-idp.", "issuer-cognito-idp."];
const COGNITO_DOMAINS: &[&str] = &["amazonaws.com", "amazonaws.com.cn"];

/// Returns the provider to which the host of a URL belongs. `None` for a custom domain, and on
/// loopback.
pub fn provider(url: &Url) -> Option<ProviderKind> {
    if is_loopback(url) {
        return None;
    }
    let host = host(url);
    Some(match host {
        "github.com" | "www.github.com" | "api.github.com" => ProviderKind::GitHub,
        "accounts.google.com" | "oauth2.googleapis.com" => ProviderKind::Google,
        _ if entra::is_entra(url) => ProviderKind::Entra,
        _ if is_below(host, OKTA) => ProviderKind::Okta,
        _ if is_below(host, AUTH0) => ProviderKind::Auth0,
        _ if is_cognito_pages(host) || is_cognito_issuer(host) => ProviderKind::Cognito,
        _ => return None,
    })
}

/// Returns the host without the dot of an absolute name.
pub(super) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_end_matches('.')
}

pub(super) fn is_cognito_pages(host: &str) -> bool {
    is_below(host, COGNITO_PAGES)
}

fn is_cognito_issuer(host: &str) -> bool {
    let is_first = |label: &&str| host.starts_with(*label);
    COGNITO_ISSUERS.iter().any(is_first) && is_below(host, COGNITO_DOMAINS)
}

/// Returns whether a host is a name in one of the domains.
pub(super) fn is_below(host: &str, domains: &[&str]) -> bool {
    domains.iter().any(|domain| {
        host.strip_suffix(domain)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    })
}
