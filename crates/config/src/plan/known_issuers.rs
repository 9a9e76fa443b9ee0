//! Issuers whose tokens no resource server can validate, and what to write instead.

mod hosts;
mod misplaced;
mod products;
mod shapes;

use anyhow::bail;
use portcullis_identity_provider::ProviderKind;
use url::Url;

use super::entra;
use crate::shown_url;

pub use hosts::provider;
pub(super) use misplaced::{doubt as misplaced, metadata_doubt};
pub(super) use shapes::{problem, region_doubt};

/// Rejects an `[[issuer]]` that issues no tokens for other resource servers. The text need not be
/// an issuer.
pub(super) fn check_resource_issuer(issuer: &str) -> anyhow::Result<()> {
    let Ok(url) = Url::parse(issuer) else {
        return Ok(());
    };
    let shown = shown_url(issuer);
    match provider(&url) {
        Some(ProviderKind::GitHub) => bail!(
            "{shown:?} is GitHub, whose access tokens are only for GitHub's API and cannot be validated here; replace the \
             [[issuer]] by a [broker] with a provider of kind = \"github\", which `portcullis init --broker-kind github` writes"
        ),
        Some(ProviderKind::Google) => bail!(
            "{shown:?} is Google, whose access tokens are only for Google's APIs and cannot be validated here; replace the \
             [[issuer]] by a [broker] with a provider of kind = \"google\", which `portcullis init --broker-kind google` writes"
        ),
        Some(ProviderKind::Entra) if entra::is_shared_tenant(&url) => bail!(
            "{shown:?} is not the issuer of a tenant, and no token has it as `iss`; write the ID of your tenant: issuer = \
             {:?}",
            entra::issuer_in_cloud_of(issuer, entra::TENANT)
        ),
        _ => {}
    }
    if provider(&url) == Some(ProviderKind::Okta) && shapes::okta_server(&url).is_none() {
        bail!(
            "{shown:?} is the organization of Okta, whose access tokens are only for Okta's API and cannot be validated here; \
             write a custom authorization server, such as \"https://{}/oauth2/default\", or a [broker] with a provider of \
             kind = \"okta\", which `portcullis init --broker` writes",
            shapes::okta_host(&url)
        );
    }
    entra::check_issuer(issuer)?;
    match problem(issuer, &url) {
        Some(problem) => bail!("{shown:?} {problem}"),
        None => Ok(()),
    }
}

/// Returns the kind of the broker's provider that this issuer needs: one with rules of its own.
pub(super) fn broker_kind(issuer: &Url) -> Option<&'static str> {
    match provider(issuer)? {
        kind @ (ProviderKind::GitHub | ProviderKind::Google | ProviderKind::Entra) => {
            Some(kind.as_str())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An issuer whose tokens cannot be validated has an error that names the remedy.
    #[test]
    fn issuers_without_usable_tokens_are_rejected() {
        for (issuer, fix) in [
            ("https://github.com", "kind = \"github\""),
            ("https://github.com/login/oauth", "kind = \"github\""),
            ("https://GitHub.com/", "kind = \"github\""),
            ("https://accounts.google.com", "kind = \"google\""),
            ("https://accounts.google.com/", "kind = \"google\""),
            ("https://accounts.google.com.", "init --broker-kind google"),
            ("https://oauth2.googleapis.com/token", "kind = \"google\""),
            ("https://example.okta.com", "/oauth2/default"),
            ("https://example.okta.com/", "kind = \"okta\""),
            (
                "https://example-admin.okta.com",
                "\"https://example.okta.com/oauth2/default\"",
            ),
            (
                "https://example-admin.okta.com/oauth2/default",
                "write \"https://example.okta.com/oauth2/default\"",
            ),
            (
                "https://login.microsoftonline.com/contoso.onmicrosoft.com/v2.0",
                "<tenant ID>",
            ),
            ("https://example.oktapreview.com", "/oauth2/default"),
            (
                "https://login.microsoftonline.com/common/v2.0",
                "<tenant ID>",
            ),
            (
                "https://login.microsoftonline.com/Organizations/v2.0",
                "<tenant ID>",
            ),
            (
                "https://login.microsoftonline.us/consumers/v2.0",
                "\"https://login.microsoftonline.us/<tenant ID>/v2.0\"",
            ),
            ("https://sts.windows.net/common/", "<tenant ID>"),
        ] {
            let error = check_resource_issuer(issuer).unwrap_err().to_string();
            assert!(error.contains(fix), "{issuer}: {error}");
            assert!(error.contains(issuer), "{error}");
        }
    }

    /// Similar issuers are not rejected.
    #[test]
    fn other_issuers_are_accepted() {
        for issuer in [
            "https://token.actions.githubusercontent.com",
            "https://github.example.com/login/oauth",
            "https://github.com.a.example",
            "https://accounts.google.com.a.example",
            "https://securetoken.google.com/project",
            "https://example.okta.com/oauth2/default",
            "https://notokta.com",
            "https://okta.com.a.example",
            "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
            "https://auth.example.com/common",
            "http://127.0.0.1:9000/common",
            "not a URL",
        ] {
            assert!(check_resource_issuer(issuer).is_ok(), "{issuer}");
        }
    }

    /// A password in the URL is not repeated.
    #[test]
    fn passwords_are_not_shown() {
        let error = check_resource_issuer("https://me:hunter2@github.com").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
