//! The identifiers that issuers of well-known providers have at their own hosts. An identifier that
//! differs is in no token.
//!
//! Sources: <https://developer.okta.com/docs/concepts/auth-servers/> and
//! <https://developer.okta.com/docs/concepts/okta-organizations/> for Okta,
//! <https://auth0.com/docs/secure/tokens/json-web-tokens/validate-json-web-tokens> for Auth0, and
//! <https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_IssuerConfigurationType.html>
//! for Cognito.

use portcullis_identity_provider::ProviderKind;
use url::Url;

use super::hosts::{host, is_cognito_pages, provider};

/// What follows the name of an Okta organization in the host of its admin console.
const OKTA_ADMIN: &str = "-admin";

/// Returns the problem of an issuer at a host of Okta, Auth0 or Cognito that is not the `iss` of
/// its tokens, and the fix. `None` for other hosts.
pub(in crate::plan) fn problem(issuer: &str, url: &Url) -> Option<String> {
    match provider(url)? {
        ProviderKind::Okta => of_okta(issuer, url),
        ProviderKind::Auth0 => of_auth0(issuer, url),
        ProviderKind::Cognito => of_cognito(issuer, url),
        _ => None,
    }
}

/// Returns the ID of the custom authorization server of Okta to which a URL belongs. `None` for the
/// organization itself.
pub(super) fn okta_server(url: &Url) -> Option<&str> {
    let mut segments = url.path_segments()?;
    let is_oauth = segments.next() == Some("oauth2");
    let id = segments.next().filter(|_| is_oauth)?;
    // The endpoints of the organization are below /oauth2/v1.
    (!id.is_empty() && id != "v1").then_some(id)
}

/// Returns the host of Okta's organization: that of its admin console has a suffix.
pub(super) fn okta_host(url: &Url) -> String {
    let host = host(url);
    match host.split_once('.') {
        Some((name, domain)) => {
            format!("{}.{domain}", name.strip_suffix(OKTA_ADMIN).unwrap_or(name))
        }
        None => host.to_owned(),
    }
}

fn of_okta(issuer: &str, url: &Url) -> Option<String> {
    let organization = okta_host(url);
    let meant = match okta_server(url) {
        Some(id) => format!("https://{organization}/oauth2/{id}"),
        None => format!("https://{organization}"),
    };
    let problem = if organization != host(url) {
        "is at the host of Okta's admin console, which issues no tokens"
    } else {
        "is not an issuer of Okta"
    };
    (issuer != meant).then(|| format!("{problem}; write {meant:?}"))
}

fn of_auth0(issuer: &str, url: &Url) -> Option<String> {
    let meant = format!("https://{}/", host(url));
    if issuer == meant {
        return None;
    }
    Some(if meant.strip_suffix('/') == Some(issuer) {
        format!("has no slash at its end, and that of Auth0 has one; write {meant:?}")
    } else {
        format!(
            "is not an issuer of Auth0, which is the domain with a slash at its end; write {meant:?}"
        )
    })
}

fn of_cognito(issuer: &str, url: &Url) -> Option<String> {
    let host = host(url);
    if is_cognito_pages(host) {
        let region = host.rsplit('.').nth(2).unwrap_or("<region>");
        return Some(format!(
            "is the domain of Cognito's sign-in pages, and no token has it as `iss`; write the issuer of the user pool, such as \
             \"https://cognito-idp.{region}.amazonaws.com/<user pool ID>\""
        ));
    }
    let pool = url
        .path_segments()
        .and_then(|mut segments| segments.next())
        .filter(|pool| !pool.is_empty());
    let meant = format!("https://{host}/{}", pool.unwrap_or("<user pool ID>"));
    (issuer != meant).then(|| format!("is not an issuer of Cognito; write {meant:?}"))
}

/// Returns the warning about a user pool of Cognito whose ID names another region than the host.
pub(in crate::plan) fn region_doubt(url: &Url) -> Option<String> {
    if provider(url) != Some(ProviderKind::Cognito) {
        return None;
    }
    let in_host = host(url)
        .strip_prefix("cognito-idp.")?
        .split('.')
        .next()
        .unwrap_or_default();
    let pool = url.path_segments()?.next()?;
    let (in_pool, _) = pool.split_once('_')?;
    (in_pool != in_host).then(|| {
        format!(
            "names the region {in_host:?} in the host and {in_pool:?} in the ID of the user pool, which begins with its region; \
             write \"https://{}/{pool}\", or the ID of the pool that is meant",
            host(url).replacen(in_host, in_pool, 1)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_of(issuer: &str) -> String {
        problem(issuer, &Url::parse(issuer).unwrap()).unwrap_or_default()
    }

    /// J9: an identifier that no token of the provider has is named, with the one to write.
    #[test]
    fn other_identifiers_are_problems() {
        for (issuer, fix) in [
            (
                "https://example-admin.okta.com/oauth2/default",
                "write \"https://example.okta.com/oauth2/default\"",
            ),
            (
                "https://example-admin.oktapreview.com",
                "write \"https://example.oktapreview.com\"",
            ),
            (
                "https://example.okta.com/oauth2/default/v1/token",
                "write \"https://example.okta.com/oauth2/default\"",
            ),
            (
                "https://example.okta.com/oauth2/aus1/.well-known/openid-configuration",
                "write \"https://example.okta.com/oauth2/aus1\"",
            ),
            (
                "https://example.okta.com/oauth2/aus1/",
                "write \"https://example.okta.com/oauth2/aus1\"",
            ),
            (
                "https://example.okta.com/oauth2/v1/authorize",
                "write \"https://example.okta.com\"",
            ),
            (
                "https://example.okta.com/",
                "write \"https://example.okta.com\"",
            ),
            (
                "https://example.eu.auth0.com",
                "has no slash at its end, and that of Auth0 has one; write \"https://example.eu.auth0.com/\"",
            ),
            (
                "https://example.eu.auth0.com/oauth/token",
                "write \"https://example.eu.auth0.com/\"",
            ),
            (
                "https://myapp.auth.eu-west-1.amazoncognito.com",
                "\"https://cognito-idp.eu-west-1.amazonaws.com/<user pool ID>\"",
            ),
            (
                "https://myapp.auth-fips.us-gov-west-1.amazoncognito.com/oauth2/token",
                "\"https://cognito-idp.us-gov-west-1.amazonaws.com/<user pool ID>\"",
            ),
            (
                "https://cognito-idp.eu-west-1.amazonaws.com",
                "write \"https://cognito-idp.eu-west-1.amazonaws.com/<user pool ID>\"",
            ),
            (
                "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A/.well-known/jwks.json",
                "write \"https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A\"",
            ),
        ] {
            let problem = problem_of(issuer);
            assert!(problem.contains(fix), "{issuer}: {problem}");
        }
    }

    /// Identifiers that tokens have, custom domains and similar names are no problems.
    #[test]
    fn identifiers_of_tokens_are_no_problems() {
        for issuer in [
            "https://example.okta.com",
            "https://example.okta.com/oauth2/default",
            "https://admin.okta.com/oauth2/default",
            "https://id-admin.example.com/oauth2/default",
            "https://login.example.com/oauth2/default/v1/token",
            "https://okta.com.a.example",
            "https://notauth0.com",
            "https://login.example.com",
            "https://example.eu.auth0.com/",
            "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A",
            "https://issuer-cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A",
            "https://cognito-idp.cn-north-1.amazonaws.com.cn/cn-north-1_A",
            "https://accounts.google.com",
        ] {
            assert_eq!(problem_of(issuer), "", "{issuer}");
        }
    }

    /// J9: two regions in one issuer are named.
    #[test]
    fn regions_are_compared() {
        let doubt = |issuer: &str| region_doubt(&Url::parse(issuer).unwrap());
        let warned = doubt("https://cognito-idp.eu-west-1.amazonaws.com/us-east-1_A").unwrap();
        assert!(warned.contains("\"eu-west-1\""), "{warned}");
        assert!(
            warned.contains("write \"https://cognito-idp.us-east-1.amazonaws.com/us-east-1_A\""),
            "{warned}"
        );
        for sound in [
            "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A",
            "https://issuer-cognito-idp.eu-west-1.amazonaws.com/us-east-1_A",
            "https://cognito-idp.eu-west-1.example.com/us-east-1_A",
        ] {
            assert_eq!(doubt(sound), None, "{sound}");
        }
    }
}
