//! Issuers: validation of `[[issuer]]`.

use std::path::Path;

use anyhow::{Context as _, anyhow, ensure};
use portcullis_discovery::{FetchError, FetchSettings, FetchSettingsError, HttpFetch};
use portcullis_jose::{Algorithm, AlgorithmSet};
use portcullis_metadata::{JwkSet, ResourceUri, is_https_or_loopback_http};
use portcullis_verifier::{ApplicationAudience, IssuerSettings, KeySource, VerifierSettingsError};
use url::Url;

use super::{Fingerprint, SUBSTITUTE_URL, entra, files, fingerprint, introspection};
use crate::config::{Diagnostics, Issuer, shown_url};

/// One issuer, and how it is reached.
pub(crate) struct IssuerPlan {
    pub(crate) settings: IssuerSettings,
    pub(crate) fetch: FetchSettings,
    pub(crate) fingerprint: Fingerprint,
}

/// The plans of the issuers; `None` for an invalid one.
pub(super) fn plan(configured: &[Issuer], errors: &mut Diagnostics<'_>) -> Vec<Option<IssuerPlan>> {
    let mut plans = Vec::new();
    for (position, issuer) in configured.iter().enumerate() {
        let mut errors = errors.table(&format!("issuer[{position}]"));
        if let Some(first) = configured[..position].iter().position(|earlier| earlier.issuer == issuer.issuer) {
            errors.add(
                "issuer",
                format!("{:?} is configured twice; remove it here or in issuer[{first}]", issuer.issuer),
            );
        }
        plans.push(issuer_plan(issuer, &mut errors));
    }
    plans
}

/// The plan of one issuer.
fn issuer_plan(issuer: &Issuer, errors: &mut Diagnostics<'_>) -> Option<IssuerPlan> {
    let fingerprint = fingerprint::issuer(issuer);
    let name = errors.take("issuer", name(&issuer.issuer));
    let validation = introspection::validation(issuer, errors);
    let algorithms = errors.take("algorithms", algorithms(&issuer.algorithms));
    let keys = keys(issuer, errors);
    let (mut audiences, mut application_audiences) = (Vec::new(), Vec::new());
    for text in &issuer.audiences {
        match audience(text) {
            Ok(Audience::Resource(uri)) => audiences.push(uri),
            Ok(Audience::Application(name)) => application_audiences.push(name),
            Err(error) => errors.add("audiences", format!("{error:#}")),
        }
    }
    let mut fetch = FetchSettings::default();
    fetch.ca_file.clone_from(&issuer.ca_file);
    fetch.proxy = match issuer.proxy.as_deref().map(Url::parse).transpose() {
        Ok(proxy) => proxy,
        Err(error) => {
            errors.add("proxy", format!("it is not a URL ({error}); write it as \"http://proxy.example.com:3128\""));
            None
        }
    };
    // Created only to validate the settings.
    errors.take("", HttpFetch::new(fetch.clone()).map_err(fetch_error));

    // Settings that are invalid for themselves are replaced by valid ones, so that the others are checked.
    let mut settings =
        IssuerSettings::new(name.clone().or_else(|| portcullis_metadata::Issuer::parse(SUBSTITUTE_URL).ok())?);
    if let Some(validation) = &validation {
        settings.validation = validation.clone();
    }
    if let Some(algorithms) = algorithms {
        settings.algorithms = algorithms;
    }
    settings.keys = keys.clone().unwrap_or_default();
    settings.cooldown = issuer.jwks.cooldown.0;
    settings.max_stale = issuer.jwks.max_stale.0;
    settings.leeway = issuer.leeway.0;
    settings.max_lifetime = issuer.max_lifetime.map(|span| span.0);
    settings.require_at_jwt = issuer.require_at_jwt;
    settings.subjectless_client = issuer.subjectless.is_some();
    settings.audiences = audiences;
    settings.application_audiences = application_audiences;
    settings.scope_claims.clone_from(&issuer.scope_claims);
    if let Err(error) = settings.check() {
        let text = error.to_string();
        let text = text.strip_prefix(&format!("issuer {}: ", settings.issuer)).unwrap_or(&text);
        let is_too_long = matches!(error, VerifierSettingsError::IntrospectionCacheLifetimeTooLong { .. });
        let fix = if is_too_long { "; write \"30s\" or less" } else { "" };
        errors.add(key_of(&error), format!("{text}{fix}"));
    }
    (name.is_some() && validation.is_some() && algorithms.is_some() && keys.is_some()).then_some(IssuerPlan {
        settings,
        fetch,
        fingerprint,
    })
}

fn name(text: &str) -> anyhow::Result<portcullis_metadata::Issuer> {
    entra::check_template(text)?;
    portcullis_metadata::Issuer::parse(text).with_context(|| {
        format!(
            "{:?} is not an issuer; write it as `iss` in the tokens, such as \"https://auth.example.com/realms/prod\"",
            shown_url(text)
        )
    })
}

/// The key that an error of the settings is about.
fn key_of(error: &VerifierSettingsError) -> &'static str {
    match error {
        VerifierSettingsError::IntrospectionClient { .. } => "client_id",
        VerifierSettingsError::IntrospectionSecret { .. } => "client_secret",
        VerifierSettingsError::IntrospectionEndpoint { .. } => "introspection_endpoint",
        VerifierSettingsError::IntrospectionInFlight { .. } => "introspection_in_flight",
        VerifierSettingsError::IntrospectionCacheLifetimeTooLong { .. } => "introspection_cache",
        VerifierSettingsError::NoAlgorithm { .. } => "algorithms",
        VerifierSettingsError::LeewayTooLong { .. } => "leeway",
        VerifierSettingsError::CooldownTooShort { .. } => "jwks.cooldown",
        VerifierSettingsError::JwksUri { .. } => "jwks_uri",
        VerifierSettingsError::ScopeClaim { .. } => "scope_claims",
        VerifierSettingsError::NoUsableKey { .. } => "jwks_file",
        _ => "",
    }
}

/// The error of the connection's settings, with its key.
fn fetch_error(error: FetchError) -> anyhow::Error {
    let FetchError::Settings(error) = error else { return error.into() };
    match error {
        FetchSettingsError::CaFileUnreadable { kind, .. } => {
            anyhow!("ca_file cannot be read ({kind}); name a PEM file")
        }
        FetchSettingsError::CaFileInvalid { .. } => {
            anyhow!("ca_file has no usable certificate; name a PEM file that has BEGIN CERTIFICATE")
        }
        FetchSettingsError::Proxy => anyhow!("proxy is not an http or https URL with a host; correct it"),
        other => other.into(),
    }
}

fn algorithms(names: &[String]) -> anyhow::Result<AlgorithmSet> {
    names
        .iter()
        .map(|name| {
            name.parse::<Algorithm>().with_context(|| {
                format!("algorithms has {name:?}; known are RS256/384/512, PS256/384/512, ES256/384/512, EdDSA")
            })
        })
        .collect()
}

fn keys(issuer: &Issuer, errors: &mut Diagnostics<'_>) -> Option<KeySource> {
    match (&issuer.jwks_uri, &issuer.jwks_file) {
        (Some(_), Some(_)) => {
            errors.add("jwks_file", "jwks_uri and jwks_file are both set; remove one");
            None
        }
        (Some(uri), None) => errors.take("jwks_uri", key_uri(uri)),
        (None, Some(file)) => errors.take("jwks_file", key_file(file)).map(KeySource::Fixed),
        (None, None) => Some(KeySource::Discovered),
    }
}

fn key_uri(text: &str) -> anyhow::Result<KeySource> {
    let shown = shown_url(text);
    let uri = Url::parse(text).with_context(|| format!("jwks_uri = {shown:?} is not a URL; write one with https"))?;
    ensure!(is_https_or_loopback_http(&uri), "jwks_uri = {shown:?} is neither https nor http on loopback; use https");
    Ok(KeySource::Uri(uri))
}

fn key_file(file: &Path) -> anyhow::Result<JwkSet> {
    let text = files::read("jwks_file", file)?;
    let set = JwkSet::parse(&text).with_context(|| {
        format!("jwks_file = {:?} is not a JWK set; save the document at the issuer's jwks_uri there", file.display())
    })?;
    ensure!(
        !set.keys.is_empty(),
        "jwks_file = {:?} has no public key that can be used; save the document at the issuer's jwks_uri there",
        file.display()
    );
    Ok(set)
}

enum Audience {
    Resource(ResourceUri),
    Application(ApplicationAudience),
}

fn audience(text: &str) -> anyhow::Result<Audience> {
    if let Ok(name) = ApplicationAudience::parse(text) {
        return Ok(Audience::Application(name));
    }
    let address = ResourceUri::parse(text).with_context(|| {
        format!(
            "audiences has {text:?}; each entry is an absolute URL of the same resource, or the issuer's own name for it: \
             a UUID or an api:// URI"
        )
    })?;
    Ok(Audience::Resource(address))
}
