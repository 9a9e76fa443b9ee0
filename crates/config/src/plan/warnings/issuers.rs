//! Issuers that are probably not those of the tokens: URLs of other documents, doubtful identifiers
//! of well-known providers, and twins.

use portcullis_identity_provider::ProviderKind;
use url::Url;

use crate::{
    Config,
    plan::{entra, known_issuers},
    shown_url,
};

/// Adds warnings about the issuers of `[[issuer]]` and `[[broker.provider]]`.
pub(super) fn warn(config: &Config, warnings: &mut Vec<String>) {
    for (position, issuer) in config.issuer.iter().enumerate() {
        let key = format!("issuer[{position}].issuer");
        warnings.extend(doubt(&issuer.issuer, &key));
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
        let bare = |text: &str| text.trim_end_matches('/').to_ascii_lowercase();
        let mut earlier = config.issuer[..position].iter();
        if let Some(first) =
            earlier.position(|earlier| bare(&earlier.issuer) == bare(&issuer.issuer))
        {
            warnings.push(format!(
                "{key} = {:?} differs from issuer[{first}] at most by letter case and a slash at its end, and tokens have one of \
                 the two; remove the other, which is not the `issuer` in the metadata",
                shown_url(&issuer.issuer)
            ));
        }
    }
    for (position, provider) in config.providers().enumerate() {
        let Some(issuer) = &provider.issuer else {
            continue;
        };
        let key = format!("broker.provider[{position}]");
        warnings.extend(doubt(issuer, &format!("{key}.issuer")));
        warnings.extend(other_kind(issuer, provider.kind.into(), &key));
    }
}

/// Returns the warning about one issuer.
fn doubt(issuer: &str, key: &str) -> Option<String> {
    let url = Url::parse(issuer).ok();
    let doubt = known_issuers::misplaced(issuer)
        .or_else(|| entra::doubt(issuer))
        .or_else(|| known_issuers::region_doubt(&url?))?;
    Some(format!("{key} = {:?} {doubt}", shown_url(issuer)))
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
