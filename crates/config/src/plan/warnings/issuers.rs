//! Issuers that are probably not those of the tokens: URLs of other documents, doubtful identifiers
//! of well-known providers, and twins.

use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::syntax::is_loopback;
use url::Url;

use crate::{
    Config,
    file::Issuer,
    plan::{entra, known_issuers},
    shown_url,
};

/// Adds warnings about the issuers of `[[issuer]]` and `[[broker.provider]]`.
pub(super) fn warn(config: &Config, warnings: &mut Vec<String>) {
    for (position, issuer) in config.issuer.iter().enumerate() {
        let key = format!("issuer[{position}].issuer");
        let twin = twin(issuer, &config.issuer[..position], &key);
        warnings.extend(twin.or_else(|| doubt(&issuer.issuer, &key)));
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
        warnings.extend(doubt.or_else(|| without_realm(issuer, kind, &key)));
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

/// Returns an issuer without the slash at its end, and with scheme and host in lower case. Paths
/// can differ by letter case, such as those of two realms of Keycloak.
fn bare(issuer: &str) -> String {
    let issuer = issuer.trim_end_matches('/');
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
        .or_else(|| known_issuers::region_doubt(&url?))?;
    Some(format!("{key} = {:?} {doubt}", shown_url(issuer)))
}

/// Returns the warning about a provider of Keycloak whose issuer is not that of a realm. An
/// imitation on loopback can have any.
fn without_realm(issuer: &str, kind: ProviderKind, key: &str) -> Option<String> {
    let url = Url::parse(issuer).ok()?;
    let has_realm = url.path().contains("/realms/");
    let is_of_other = known_issuers::provider(&url).is_some();
    if kind != ProviderKind::Keycloak || has_realm || is_of_other || is_loopback(&url) {
        return None;
    }
    let shown = shown_url(issuer);
    Some(format!(
        "{key}.issuer = {shown:?} names no realm, and every issuer of Keycloak does; write {:?}",
        format!("{}/realms/<realm>", shown.trim_end_matches('/'))
    ))
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
        let kind = ProviderKind::Keycloak;
        for issuer in ["https://kc.example.com", "https://kc.example.com/"] {
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
            ("https://kc.example.com", ProviderKind::Oidc),
        ] {
            assert_eq!(warned(issuer, kind), None, "{issuer}");
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
