//! Token validation per issuer: signatures, introspection, or both.

use crate::{
    Diagnostic, Diagnostics, KeyPath,
    file::{self, IntrospectionAuth, Issuer},
    shown_url,
};
use anyhow::{Context as _, ensure};
use portcullis_metadata::syntax::is_https_or_loopback_http;
use portcullis_verifier::{IntrospectionAuthentication, IntrospectionSettings, Validation};
use url::Url;

/// Validates how an issuer's tokens are validated, and adds an error for each setting that is
/// invalid or has no effect.
///
/// Returns `None` if introspection cannot be used.
pub(super) fn validation(issuer: &Issuer, errors: &mut Diagnostics<'_>) -> Option<Validation> {
    match issuer.validate {
        file::Validation::Jwt => {
            reject_introspection_settings(issuer, errors);
            Some(Validation::Jwt)
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
            settings(issuer, errors).map(Validation::Introspection)
        }
        file::Validation::JwtAndIntrospection => {
            settings(issuer, errors).map(Validation::JwtAndIntrospection)
        }
    }
}

/// Returns a warning for each issuer whose `algorithms` have no effect. They cannot be told apart
/// from the default if they have its value.
pub(super) fn warnings(issuers: &[Issuer]) -> Vec<Diagnostic> {
    let is_unused = |issuer: &Issuer| {
        issuer.validate == file::Validation::Introspection
            && issuer.algorithms != Issuer::new(&issuer.issuer).algorithms
    };
    let unused = issuers.iter().enumerate();
    unused
        .filter(|(_, issuer)| is_unused(issuer))
        .map(|(position, _)| {
            let text = format!(
                "issuer[{position}].algorithms has no effect, because validate = \"introspection\" checks no signatures; remove it, \
                 or set validate = \"jwt+introspection\""
            );
            Diagnostic::new(&KeyPath::default(), &text)
        })
        .collect()
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
            errors.add(
                name,
                format!(
                    "{name} is for introspection; set validate = \"introspection\" or \"jwt+introspection\", or remove it"
                ),
            );
        }
    }
}

/// Validates the settings of introspection, and reads the secret.
fn settings(issuer: &Issuer, errors: &mut Diagnostics<'_>) -> Option<IntrospectionSettings> {
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
    let mut settings = IntrospectionSettings::new(client_id?);
    settings.client_secret = secret?;
    settings.endpoint = endpoint?;
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
    Some(settings)
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
