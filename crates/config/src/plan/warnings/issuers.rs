//! Issuers that are probably not those of the tokens: URLs of other documents, doubtful identifiers
//! of well-known providers, and twins.

use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::syntax::is_loopback;
use url::Url;

use crate::{
    Config,
    file::{Issuer, Validation},
    plan::{entra, known_issuers},
    shown_url,
};

/// Adds warnings about the issuers of `[[issuer]]` and `[[broker.provider]]`.
pub(super) fn warn(config: &Config, warnings: &mut Vec<String>) {
    for (position, issuer) in config.issuer.iter().enumerate() {
        let key = format!("issuer[{position}].issuer");
        let twin = twin(issuer, &config.issuer[..position], &key);
        let table = format!("issuer[{position}]");
        let doubt = twin.or_else(|| doubt(&issuer.issuer, &key));
        warnings.extend(doubt.or_else(|| without_realm(&issuer.issuer, None, &table)));
        warnings.extend(unlisted(issuer, config, &key));
        warnings.extend(entra::audience_warning(issuer, &table));
        warnings.extend(other_algorithms(issuer, &table));
        for (name, url) in [
            ("jwks_uri", &issuer.jwks_uri),
            ("introspection_endpoint", &issuer.introspection_endpoint),
        ] {
            let url = url.as_deref().unwrap_or_default();
            let doubt = known_issuers::metadata_doubt(url, name);
            warnings.extend(doubt.map(|doubt| {
                let shown = shown_url(url);
                format!("issuer[{position}].{name} = {shown:?} {doubt}")
            }));
        }
    }
    for (position, provider) in config.providers().enumerate() {
        let Some(issuer) = &provider.issuer else {
            continue;
        };
        let key = format!("broker.provider[{position}]");
        let kind = ProviderKind::from(provider.kind);
        let doubt = doubt(issuer, &format!("{key}.issuer"));
        warnings.extend(doubt.or_else(|| without_realm(issuer, Some(kind), &key)));
        warnings.extend(other_kind(issuer, kind, &key));
    }
}

/// Returns the warning about an issuer that differs from an earlier one where issuers have no
/// difference.
fn twin(issuer: &Issuer, earlier: &[Issuer], key: &str) -> Option<String> {
    let first = earlier
        .iter()
        .position(|earlier| bare(&earlier.issuer) == bare(&issuer.issuer))?;
    Some(format!(
        "{key} = {:?} differs from issuer[{first}] at most by the letter case of the host and a slash at its end, and tokens have one of \
         the two; remove the other, which is not the `issuer` in the metadata",
        shown_url(&issuer.issuer)
    ))
}

/// The providers that sign with RS256 only:
/// <https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols-oidc>,
/// <https://developer.okta.com/docs/reference/api/oidc/#access-token-header> and
/// <https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html>.
const RS256_ONLY: &[(ProviderKind, &str)] = &[
    (ProviderKind::Entra, "Entra ID"),
    (ProviderKind::Okta, "Okta"),
    (ProviderKind::Cognito, "Cognito"),
];

/// Returns the warning about algorithms without the one with which the provider signs.
fn other_algorithms(issuer: &Issuer, key: &str) -> Option<String> {
    let of_host = known_issuers::provider(&Url::parse(&issuer.issuer).ok()?)?;
    let (_, name) = RS256_ONLY.iter().find(|(kind, _)| *kind == of_host)?;
    let algorithms = &issuer.algorithms;
    // An empty list is an error, and introspection has a warning of its own.
    let is_checked = issuer.validate != Validation::Introspection && !algorithms.is_empty();
    let has_rs256 = algorithms.iter().any(|algorithm| algorithm == "RS256");
    (is_checked && !has_rs256).then(|| {
        format!(
            "{key}.algorithms lacks \"RS256\", with which {name} signs, so that every token is rejected; remove algorithms"
        )
    })
}

/// Returns the warning about an issuer that no resource accepts.
fn unlisted(issuer: &Issuer, config: &Config, key: &str) -> Option<String> {
    let is_accepted = config.resource.iter().any(|resource| {
        let listed = resource.issuers.as_ref();
        listed.is_none_or(|listed| listed.contains(&issuer.issuer))
    });
    (!is_accepted && !config.resource.is_empty()).then(|| {
        format!(
            "{key} = {:?} is in the `issuers` of no resource, so that its tokens are accepted nowhere; add it there, or remove \
             this [[issuer]]",
            shown_url(&issuer.issuer)
        )
    })
}

/// Returns the problem of an issuer with capitals where issuers have no letter case, and the fix.
/// Tokens are compared exactly.
fn capitals(issuer: &str) -> Option<String> {
    let meant = with_lower_host(issuer);
    (meant != issuer).then(|| {
        format!(
            "has capitals before its path, and issuers are compared exactly, so that probably no token has it as `iss`; write the \
             `issuer` that is in the metadata, probably {:?}",
            shown_url(&meant)
        )
    })
}

/// Returns an issuer without the slash at its end, and with scheme and host in lower case.
fn bare(issuer: &str) -> String {
    with_lower_host(issuer.trim_end_matches('/'))
}

/// Returns an issuer with scheme and host in lower case. Paths can differ by letter case, such as
/// those of two realms of Keycloak.
fn with_lower_host(issuer: &str) -> String {
    let host = issuer.find("://").map_or(0, |scheme| scheme + "://".len());
    let end = issuer[host..]
        .find('/')
        .map_or(issuer.len(), |path| host + path);
    let (host, path) = issuer.split_at(end);
    format!("{}{path}", host.to_ascii_lowercase())
}

/// Returns the warning about one issuer.
fn doubt(issuer: &str, key: &str) -> Option<String> {
    let url = Url::parse(issuer).ok();
    let doubt = known_issuers::misplaced(issuer)
        .or_else(|| entra::doubt(issuer))
        .or_else(|| known_issuers::region_doubt(&url?))
        .or_else(|| capitals(issuer))?;
    Some(format!("{key} = {:?} {doubt}", shown_url(issuer)))
}

/// Returns the warning about an issuer of Keycloak that is not that of a realm. Without the kind of
/// a provider, Keycloak is recognized by its host or path. An imitation on loopback can have any.
fn without_realm(issuer: &str, kind: Option<ProviderKind>, key: &str) -> Option<String> {
    let url = Url::parse(issuer).ok()?;
    let trimmed = issuer.trim_end_matches('/');
    let before_realm = trimmed.strip_suffix("/realms");
    let has_realm = trimmed.contains("/realms/");
    let is_keycloak = match kind {
        Some(kind) => kind == ProviderKind::Keycloak,
        None => names_keycloak(&url) || before_realm.is_some(),
    };
    let is_of_other = known_issuers::provider(&url).is_some();
    if !is_keycloak || has_realm || is_of_other || is_loopback(&url) {
        return None;
    }
    let base = before_realm.unwrap_or(trimmed);
    Some(format!(
        "{key}.issuer = {:?} names no realm, and every issuer of Keycloak does; write {:?}",
        shown_url(issuer),
        shown_url(&format!("{base}/realms/<realm>"))
    ))
}

/// Whether a part of the host, between dots and hyphens, is `keycloak`.
fn names_keycloak(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host.split(['.', '-']).any(|part| part == "keycloak")
}

/// Returns the warning about a provider whose issuer belongs to a provider of another kind.
fn other_kind(issuer: &str, kind: ProviderKind, key: &str) -> Option<String> {
    let of_host = known_issuers::provider(&Url::parse(issuer).ok()?)?;
    (of_host != kind && kind != ProviderKind::Oidc).then(|| {
        format!(
            "{key}.kind = \"{}\" does not fit issuer = {:?}, which belongs to {}; write kind = \"{}\", or the issuer of {}",
            kind.as_str(),
            shown_url(issuer),
            of_host.display_name(),
            of_host.as_str(),
            kind.display_name()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: an issuer of Keycloak without a realm is named.
    #[test]
    fn keycloak_has_realms() {
        let warned = |issuer, kind| without_realm(issuer, kind, "broker.provider[0]");
        let kind = Some(ProviderKind::Keycloak);
        for (issuer, kind) in [
            ("https://kc.example.com", kind),
            ("https://kc.example.com/", kind),
            ("https://kc.example.com/realms", None),
            ("https://kc.example.com/realms/", None),
        ] {
            let warning = warned(issuer, kind).unwrap();
            assert!(
                warning.ends_with("write \"https://kc.example.com/realms/<realm>\""),
                "{warning}"
            );
        }
        for (issuer, kind) in [
            ("https://kc.example.com/auth/realms/prod", kind),
            ("http://127.0.0.1:9000", kind),
            ("https://example.okta.com", kind),
            ("https://kc.example.com", Some(ProviderKind::Oidc)),
            ("https://kc.example.com", None),
            ("https://keycloaks.example.com", None),
            ("https://keycloak.example.com/auth/realms/prod", None),
        ] {
            assert_eq!(warned(issuer, kind), None, "{issuer}");
        }
        for (issuer, meant) in [
            (
                "https://keycloak.example.com/auth/",
                "https://keycloak.example.com/auth/realms/<realm>",
            ),
            (
                "https://my-keycloak:8443",
                "https://my-keycloak:8443/realms/<realm>",
            ),
        ] {
            let warning = warned(issuer, None).unwrap_or_else(|| panic!("{issuer}"));
            assert!(warning.ends_with(&format!("write {meant:?}")), "{warning}");
        }
    }

    /// J9: algorithms with which a provider does not sign are named. Those of Auth0 and Keycloak
    /// can be chosen.
    #[test]
    fn algorithms_without_that_of_the_provider_are_named() {
        let warned = |issuer: &str, algorithms: &[&str]| {
            let mut issuer = Issuer::new(issuer);
            issuer.algorithms = algorithms.iter().map(|&name| name.to_owned()).collect();
            other_algorithms(&issuer, "issuer[0]")
        };
        let fixed = [
            (
                "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
                "Entra ID",
            ),
            ("https://example.okta.com/oauth2/default", "Okta"),
            (
                "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI",
                "Cognito",
            ),
        ];
        for (issuer, name) in fixed {
            let warning = warned(issuer, &["ES256", "PS256"]).unwrap();
            assert_eq!(
                warning,
                format!(
                    "issuer[0].algorithms lacks \"RS256\", with which {name} signs, so that every token is rejected; remove \
                     algorithms"
                )
            );
            assert_eq!(warned(issuer, &["ES256", "RS256"]), None, "{issuer}");
            assert_eq!(warned(issuer, &[]), None, "{issuer}");
        }
        for issuer in [
            "https://example.eu.auth0.com/",
            "https://auth.example.com/realms/prod",
        ] {
            assert_eq!(warned(issuer, &["ES256"]), None, "{issuer}");
        }
    }

    /// J9: an issuer that no resource lists is named, unless a resource accepts all.
    #[test]
    fn unlisted_issuers_are_named() {
        let warned = |resources: &str| {
            let issuer = "https://a.example";
            let text = format!("base_url = 'https://mcp.example.com'\n{resources}");
            let config = crate::from_text(&text).unwrap();
            unlisted(&Issuer::new(issuer), &config, "issuer[0].issuer").unwrap_or_default()
        };
        let resource = |issuers: &str| {
            format!("[[resource]]\nendpoint = '/mcp'\nupstream = 'demo'\n{issuers}\n")
        };
        let other = resource("issuers = ['https://b.example']");
        assert!(warned(&other).contains("is in the `issuers` of no resource"));
        for more in ["issuers = ['https://a.example']", ""] {
            assert_eq!(warned(&format!("{other}{}", resource(more))), "", "{more}");
        }
    }

    /// J9: tokens have scheme and host in lower case, and paths in any.
    #[test]
    fn capitals_are_named() {
        for (issuer, meant) in [
            ("HTTPS://a.example/X", "https://a.example/X"),
            ("https://Auth.example:8443/", "https://auth.example:8443/"),
        ] {
            let problem = capitals(issuer).unwrap_or_default();
            assert!(
                problem.ends_with(&format!("probably {meant:?}")),
                "{problem}"
            );
        }
        for issuer in ["https://a.example/realms/Prod", "http://[::1]:9000"] {
            assert_eq!(capitals(issuer), None, "{issuer}");
        }
    }

    /// J9: scheme and host have no letter case, and paths have.
    #[test]
    fn hosts_have_no_letter_case() {
        assert_eq!(
            bare("HTTPS://Auth.Example.com/"),
            "https://auth.example.com"
        );
        let (upper, lower) = ["Test", "test"]
            .map(|realm| bare(&format!("https://Auth.example.com/realms/{realm}")))
            .into();
        assert_ne!(upper, lower);
        assert_eq!(bare("Auth/X"), "auth/X");
    }
}
