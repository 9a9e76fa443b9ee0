//! Token validation per issuer: signatures, introspection, or both.

use super::{entra, known_issuers};
use crate::{
    Diagnostic, Diagnostics, KeyPath,
    file::{self, IntrospectionAuth, Issuer},
    shown_url,
};
use anyhow::{Context as _, ensure};
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::{
    Secret,
    syntax::{is_https_or_loopback_http, is_uuid},
};
use portcullis_verifier::{IntrospectionAuthentication, IntrospectionSettings, Validation};
use url::Url;

/// How an issuer's tokens are validated.
pub(super) struct Checked {
    /// With valid substitutes for invalid settings, so that the others are checked.
    pub(super) validation: Validation,
    /// Whether nothing is a substitute.
    pub(super) is_valid: bool,
}

/// Validates how an issuer's tokens are validated, and adds an error for each setting that is
/// invalid or has no effect.
pub(super) fn validation(issuer: &Issuer, errors: &mut Diagnostics<'_>) -> Checked {
    match issuer.validate {
        file::Validation::Jwt => {
            reject_introspection_settings(issuer, errors);
            Checked {
                validation: Validation::Jwt,
                is_valid: true,
            }
        }
        file::Validation::Introspection => {
            for (name, is_set) in [
                ("jwks_uri", issuer.jwks_uri.is_some()),
                ("jwks_file", issuer.jwks_file.is_some()),
            ] {
                if is_set {
                    errors.add(
                        name,
                        format!(
                            "{name} is for signatures, which validate = \"introspection\" does not use; remove it, or set \
                             validate = \"jwt+introspection\""
                        ),
                    );
                }
            }
            checked(issuer, Validation::Introspection, errors)
        }
        file::Validation::JwtAndIntrospection => {
            checked(issuer, Validation::JwtAndIntrospection, errors)
        }
    }
}

fn checked(
    issuer: &Issuer,
    validation: impl Fn(IntrospectionSettings) -> Validation,
    errors: &mut Diagnostics<'_>,
) -> Checked {
    let (settings, is_valid) = settings(issuer, errors);
    Checked {
        validation: validation(settings),
        is_valid,
    }
}

/// Providers whose metadata has no introspection endpoint:
/// <https://login.microsoftonline.com/common/v2.0/.well-known/openid-configuration>,
/// <https://samples.auth0.com/.well-known/openid-configuration> and
/// <https://docs.aws.amazon.com/cognito/latest/developerguide/federation-endpoints.html>.
const WITHOUT_ENDPOINT: [ProviderKind; 3] = [
    ProviderKind::Entra,
    ProviderKind::Auth0,
    ProviderKind::Cognito,
];

/// Returns warnings about settings of introspection that have no effect or cannot work.
pub(super) fn warnings(issuers: &[Issuer]) -> Vec<Diagnostic> {
    let texts = issuers.iter().enumerate().flat_map(|(position, issuer)| {
        let key = format!("issuer[{position}]");
        [
            unused_algorithms(issuer, &key),
            without_endpoint(issuer, &key),
        ]
    });
    texts
        .flatten()
        .map(|text| Diagnostic::new(&KeyPath::default(), &text))
        .collect()
}

/// `algorithms` cannot be told apart from the default if they have its value.
fn unused_algorithms(issuer: &Issuer, key: &str) -> Option<String> {
    let is_unused = issuer.validate == file::Validation::Introspection
        && issuer.algorithms != Issuer::new(&issuer.issuer).algorithms;
    is_unused.then(|| {
        format!(
            "{key}.algorithms has no effect, because validate = \"introspection\" checks no signatures; remove it, or set \
             validate = \"jwt+introspection\""
        )
    })
}

fn without_endpoint(issuer: &Issuer, key: &str) -> Option<String> {
    let uses_metadata =
        issuer.validate != file::Validation::Jwt && issuer.introspection_endpoint.is_none();
    let provider = known_issuers::provider(&Url::parse(&issuer.issuer).ok()?)?;
    (uses_metadata && WITHOUT_ENDPOINT.contains(&provider)).then(|| {
        format!(
            "{key}.validate: {} has no introspection endpoint in its metadata, so that every token is rejected; remove validate and the \
             keys of introspection, such as client_id",
            provider.display_name()
        )
    })
}

/// Rejects settings that have no effect without introspection.
fn reject_introspection_settings(issuer: &Issuer, errors: &mut Diagnostics<'_>) {
    for (name, is_set) in [
        ("client_id", issuer.client_id.is_some()),
        ("client_secret", issuer.client_secret.is_some()),
        (
            "introspection_endpoint",
            issuer.introspection_endpoint.is_some(),
        ),
        ("introspection_auth", issuer.introspection_auth.is_some()),
        (
            "introspection_in_flight",
            issuer.introspection_in_flight.is_some(),
        ),
        ("introspection_cache", issuer.introspection_cache.is_some()),
    ] {
        if is_set {
            let fix = of_entra(name, issuer).unwrap_or_else(|| {
                "set validate = \"introspection\" or \"jwt+introspection\", or remove it".to_owned()
            });
            errors.add(name, format!("{name} is for introspection; {fix}"));
        }
    }
}

/// Returns the fix for a setting of introspection at an issuer of Entra ID, which has none. The
/// identifier of an application is the audience of its tokens there.
fn of_entra(name: &str, issuer: &Issuer) -> Option<String> {
    let client_id = issuer.client_id.as_deref().filter(|id| is_uuid(id));
    let audiences = format!("audiences = [\"{}\"]", client_id.unwrap_or("…"));
    let is_entra = Url::parse(&issuer.issuer).is_ok_and(|url| entra::is_entra(&url));
    match name {
        "client_id" if is_entra => Some(format!(
            "write {audiences} in its place, the `aud` of the tokens of Entra ID, which has no introspection"
        )),
        "client_id" if client_id.is_some() => Some(format!(
            "write {audiences} for the `aud` of Entra ID, or set validate = \"introspection\", or remove it"
        )),
        _ if is_entra => Some("remove it, because Entra ID has no introspection".to_owned()),
        _ => None,
    }
}

/// Validates the settings of introspection, and reads the secret. Returns them with substitutes,
/// and whether there are none.
fn settings(issuer: &Issuer, errors: &mut Diagnostics<'_>) -> (IntrospectionSettings, bool) {
    let client_id = issuer.client_id.as_deref().filter(|id| !id.is_empty());
    if client_id.is_none() {
        errors.add(
            "client_id",
            "introspection needs client_id; set it to the identifier of this server's client at the issuer",
        );
    }
    let secret = issuer.client_secret.as_ref().map(|source| source.read());
    let secret = errors.take("client_secret", secret.transpose());
    let endpoint = errors.take(
        "introspection_endpoint",
        issuer
            .introspection_endpoint
            .as_deref()
            .map(endpoint)
            .transpose(),
    );
    let is_valid = client_id.is_some() && secret.is_some() && endpoint.is_some();
    let mut settings = IntrospectionSettings::new(client_id.unwrap_or("client"));
    settings.client_secret = secret.unwrap_or_else(|| Some(Secret::new("secret")));
    settings.endpoint = endpoint.flatten();
    settings.authentication =
        issuer
            .introspection_auth
            .map(|authentication| match authentication {
                IntrospectionAuth::Post => IntrospectionAuthentication::Post,
                IntrospectionAuth::Basic => IntrospectionAuthentication::Basic,
            });
    if let Some(most) = issuer.introspection_in_flight {
        settings.max_in_flight = most;
    }
    if let Some(span) = issuer.introspection_cache {
        settings.cache_lifetime = span.0;
    }
    (settings, is_valid)
}

fn endpoint(text: &str) -> anyhow::Result<Url> {
    let shown = shown_url(text);
    let url = Url::parse(text).with_context(|| {
        format!("introspection_endpoint = {shown:?} is not a URL; write one with https")
    })?;
    ensure!(
        is_https_or_loopback_http(&url),
        "introspection_endpoint = {shown:?} is neither https nor http on loopback; use https"
    );
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: a provider without introspection endpoint is named, unless an endpoint is configured.
    #[test]
    fn providers_without_endpoint_are_named() {
        let warned = |issuer: &str, more: &str| {
            let text = format!("issuer = \"{issuer}\"\nclient_id = \"x\"\n{more}");
            warnings(&[toml::from_str(&text).unwrap()])
        };
        let tenant = "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0";
        let pool = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A";
        for issuer in [tenant, "https://example.eu.auth0.com/", pool] {
            for validate in ["introspection", "jwt+introspection"] {
                let line = format!("validate = \"{validate}\"");
                let found = warned(issuer, &line);
                assert_eq!(found.len(), 1, "{issuer}: {found:#?}");
                assert_eq!(found[0].key.to_string(), "issuer[0].validate");
                let own = "introspection_endpoint = \"https://a.example/introspect\"";
                assert!(warned(issuer, &format!("{line}\n{own}")).is_empty());
            }
            assert!(warned(issuer, "").is_empty());
        }
        for issuer in [
            "https://example.okta.com/oauth2/default",
            "https://login.example.com/",
            "http://127.0.0.1:9000/",
        ] {
            assert!(warned(issuer, "validate = \"introspection\"").is_empty());
        }
    }

    /// J9: a client at Entra ID is the audience of its tokens.
    #[test]
    fn clients_of_entra_are_audiences() {
        const TENANT: &str =
            "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0";
        const CLIENT: &str = "11112222-bbbb-3333-cccc-4444dddd5555";
        let fix = |name, issuer, client_id: &str| {
            let mut issuer = Issuer::new(issuer);
            issuer.client_id = Some(client_id.to_owned());
            of_entra(name, &issuer).unwrap_or_default()
        };
        let audience = format!("write audiences = [\"{CLIENT}\"]");
        assert!(fix("client_id", TENANT, CLIENT).starts_with(&audience));
        assert!(fix("client_id", "https://auth.example.com", CLIENT).starts_with(&audience));
        assert!(fix("client_id", TENANT, "x").starts_with("write audiences = [\"…\"]"));
        assert_eq!(fix("client_id", "https://auth.example.com", "x"), "");
        assert!(fix("client_secret", TENANT, CLIENT).starts_with("remove it"));
    }
}
