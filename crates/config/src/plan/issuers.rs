//! Issuers: validation of `[[issuer]]`.

mod key_algorithms;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use portcullis_discovery::{FetchError, FetchSettings, FetchSettingsError, HttpFetch};
use portcullis_jose::{Algorithm, AlgorithmSet, MAX_KEYS};
use portcullis_metadata::{
    JwkSet,
    syntax::{is_https_or_loopback_http, is_loopback},
};
use portcullis_verifier::{
    IntrospectionSettings, IssuerSettings, KeySource, Validation, VerifierSettingsError,
};
use url::Url;

use super::{
    Fingerprint, SUBSTITUTE_URL,
    audiences::{self, Endpoints},
    entra, files, fingerprint, introspection, keycloak_pages, known_issuers, look_alikes,
    url_fix::{ascii_form, url_fix},
};
use crate::{Diagnostics, Span, file::Issuer, shown_url, similar::respelled};

/// One issuer, and how it is reached.
pub struct IssuerPlan {
    /// What the verifier needs.
    pub settings: IssuerSettings,
    /// How its metadata and keys are fetched.
    pub fetch: FetchSettings,
    /// The fingerprint of its settings and of the content of its files.
    pub fingerprint: Fingerprint,
}

/// Validates the issuers, and adds an error for each invalid value. Returns their plans; `None` for
/// an invalid one.
pub(super) fn plan(
    configured: &[Issuer],
    endpoints: &Endpoints<'_>,
    errors: &mut Diagnostics<'_>,
) -> Vec<Option<IssuerPlan>> {
    let mut plans = Vec::new();
    for (position, issuer) in configured.iter().enumerate() {
        let mut errors = errors.table(&format!("issuer[{position}]"));
        if let Some(first) = configured[..position]
            .iter()
            .position(|earlier| earlier.issuer == issuer.issuer)
        {
            errors.add(
                "issuer",
                format!(
                    "{:?} is configured twice; remove it here or in issuer[{first}]",
                    shown_url(&issuer.issuer)
                ),
            );
        }
        plans.push(issuer_plan(issuer, endpoints, &mut errors));
    }
    let audiences: Vec<_> = plans
        .iter()
        .map(|plan| plan.as_ref().map(|plan| &plan.settings.audiences[..]))
        .collect();
    audiences::check_distinct(&audiences, endpoints, errors);
    plans
}

fn issuer_plan(
    issuer: &Issuer,
    endpoints: &Endpoints<'_>,
    errors: &mut Diagnostics<'_>,
) -> Option<IssuerPlan> {
    let audiences = audiences::of_issuer(issuer, endpoints, errors);
    let fingerprint = fingerprint::issuer(issuer, &audiences);
    let name = errors.take("issuer", name(&issuer.issuer));
    let validation = introspection::validation(issuer, errors);
    errors.take("max_lifetime", check_max_lifetime(issuer.max_lifetime));
    let algorithms = errors.take_all(
        "algorithms",
        issuer.algorithms.iter().map(|name| algorithm(name)),
    );
    let algorithms: Option<AlgorithmSet> = algorithms.map(|all| all.into_iter().collect());
    let keys = keys(issuer, errors);
    if let (Some(allowed), Some(KeySource::Fixed(set)), Some(file)) =
        (algorithms, &keys, &issuer.jwks_file)
    {
        errors.take("jwks_file", key_algorithms::check(set, allowed, file));
    }
    let fetch = fetch_settings(issuer.ca_file.as_ref(), issuer.proxy.as_deref(), errors);

    // Settings that are invalid for themselves are replaced by valid ones, so that the others are
    // checked.
    let mut settings = IssuerSettings::new(
        name.clone()
            .or_else(|| portcullis_metadata::Issuer::parse(SUBSTITUTE_URL).ok())?,
    );
    settings.validation = validation.validation;
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
    settings.scope_claims.clone_from(&issuer.scope_claims);
    check_settings(&mut settings, errors);
    (name.is_some() && validation.is_valid && algorithms.is_some() && keys.is_some()).then_some(
        IssuerPlan {
            settings,
            fetch,
            fingerprint,
        },
    )
}

/// The URL of a proxy, for messages.
const PROXY: &str = "http://proxy.example.com:3128";

/// Returns how a server is reached. Adds an error for each invalid setting.
pub(super) fn fetch_settings(
    ca_file: Option<&PathBuf>,
    proxy: Option<&str>,
    errors: &mut Diagnostics<'_>,
) -> FetchSettings {
    let mut fetch = FetchSettings::default();
    fetch.ca_file = ca_file.cloned();
    let parse = |text| {
        Url::parse(text).map_err(|error| {
            anyhow!(
                "it is not a URL ({error}); {}",
                url_fix(text, "http", PROXY)
            )
        })
    };
    fetch.proxy = errors.take("proxy", proxy.map(parse).transpose()).flatten();
    check_fetch(&fetch, errors);
    fetch
}

/// Checks the settings of the connection. Adds an error for each invalid one.
fn check_fetch(fetch: &FetchSettings, errors: &mut Diagnostics<'_>) {
    let mut checked = fetch.clone();
    // Created only to validate the settings. It fails at the first one, which is then left out.
    while let Err(error) = HttpFetch::new(checked.clone()) {
        let is_left_out = match &error {
            FetchError::Settings(FetchSettingsError::Proxy) => checked.proxy.take().is_some(),
            _ => checked.ca_file.take().is_some(),
        };
        let text = match (&error, &fetch.proxy) {
            (FetchError::Settings(FetchSettingsError::Proxy), Some(proxy)) => proxy_error(proxy),
            _ => format!("{:#}", fetch_error(error)),
        };
        errors.add("", text);
        if !is_left_out {
            return;
        }
    }
}

/// The error of a proxy whose URL has another scheme than http and https, or no host.
fn proxy_error(proxy: &Url) -> String {
    let text = proxy.as_str();
    // In `host:port:user:password`, the host is read as a scheme.
    let shown = if !proxy.has_host() && text.matches(':').count() > 1 {
        String::new()
    } else {
        format!(" = {:?}", shown_url(text))
    };
    let fix = if proxy.scheme().starts_with("socks") {
        format!("SOCKS is not supported; write the URL of an HTTP proxy, such as \"{PROXY}\"")
    } else {
        // The host of `proxy:3128` was read as a scheme.
        url_fix(text, "http", PROXY)
    };
    format!("proxy{shown} is not an http or https URL with a host; {fix}")
}

/// Checks the settings together. Adds an error for each invalid one, and replaces it by its
/// default: the check returns the first problem only.
fn check_settings(settings: &mut IssuerSettings, errors: &mut Diagnostics<'_>) {
    while let Err(error) = settings.check() {
        let text = error.to_string();
        let text = text
            .strip_prefix(&format!("issuer {}: ", settings.issuer))
            .unwrap_or(&text);
        let is_too_long = matches!(
            error,
            VerifierSettingsError::IntrospectionCacheLifetimeTooLong { .. }
        );
        let fix = if is_too_long {
            "; write \"30s\" or less"
        } else {
            ""
        };
        errors.add(key_of(&error), format!("{text}{fix}"));
        if !reset(settings, &error) {
            return;
        }
    }
}

/// Sets the setting that an error is about to a valid value. Returns whether that is possible.
fn reset(settings: &mut IssuerSettings, error: &VerifierSettingsError) -> bool {
    use VerifierSettingsError as Error;

    let default = IssuerSettings::new(settings.issuer.clone());
    match error {
        Error::NoAlgorithm { .. } => settings.algorithms = default.algorithms,
        Error::LeewayTooLong { .. } => settings.leeway = default.leeway,
        Error::CooldownTooShort { .. } => settings.cooldown = default.cooldown,
        Error::JwksUri { .. } => settings.keys = default.keys,
        Error::ScopeClaim { claim, .. } => settings.scope_claims.retain(|listed| listed != claim),
        _ => {
            let (Validation::Introspection(introspection)
            | Validation::JwtAndIntrospection(introspection)) = &mut settings.validation
            else {
                return false;
            };
            let default = IntrospectionSettings::new("client");
            match error {
                Error::IntrospectionClient { .. } => introspection.client_id = default.client_id,
                Error::IntrospectionSecret { .. } => {
                    introspection.authentication = default.authentication
                }
                Error::IntrospectionEndpoint { .. } => introspection.endpoint = default.endpoint,
                Error::IntrospectionInFlight { .. } => {
                    introspection.max_in_flight = default.max_in_flight
                }
                Error::IntrospectionCacheLifetimeTooLong { .. } => {
                    introspection.cache_lifetime = default.cache_lifetime
                }
                _ => return false,
            }
        }
    }
    true
}

fn name(text: &str) -> anyhow::Result<portcullis_metadata::Issuer> {
    check_text(text)?;
    entra::check_template(text)?;
    keycloak_pages::check(text)?;
    known_issuers::check_resource_issuer(text)?;
    if !text.contains("://") && !text.starts_with("http") {
        known_issuers::check_resource_issuer(&format!("https://{text}"))?;
        bail!(
            "{:?} is not an issuer, because it has no https://; write it as `iss` in the tokens, such as \
             \"https://auth.example.com/realms/prod\"",
            shown_url(text)
        );
    }
    check_https(text)?;
    portcullis_metadata::Issuer::parse(text).with_context(|| {
        let example = match ascii_form(text) {
            Some(ascii) => format!("probably {ascii:?}"),
            None => "such as \"https://auth.example.com/realms/prod\"".to_owned(),
        };
        format!(
            "{:?} is not an issuer; write it as `iss` in the tokens, {example}",
            shown_url(text)
        )
    })
}

/// Rejects an issuer with spaces around it, and one with a host that looks like another.
pub(super) fn check_text(issuer: &str) -> anyhow::Result<()> {
    ensure!(
        issuer.trim() == issuer,
        "{:?} has a space at its start or end; remove it",
        shown_url(issuer)
    );
    match look_alikes::problem(issuer) {
        Some(problem) => bail!("{:?} {problem}", shown_url(issuer)),
        None => Ok(()),
    }
}

/// Rejects an issuer with plain http on another host than loopback. Its tokens have that URL, so
/// that another one here would not fit them.
pub(super) fn check_https(issuer: &str) -> anyhow::Result<()> {
    let Ok(url) = Url::parse(issuer) else {
        return Ok(());
    };
    let setting = match url.path().contains("/realms/") {
        true => " (Keycloak: KC_HOSTNAME or --hostname)",
        false => "",
    };
    ensure!(
        url.scheme() != "http" || is_loopback(&url),
        "issuer = {:?} is plain http, which is accepted on loopback only; give the authorization server an https address{setting}, which its \
         tokens then have as `iss`, and write that",
        shown_url(issuer)
    );
    Ok(())
}

/// Times in tokens are whole seconds (RFC 7519 section 2), and each token lives longer than none.
fn check_max_lifetime(configured: Option<Span>) -> anyhow::Result<()> {
    if let Some(lifetime) = configured {
        ensure!(
            lifetime >= Span::secs(1),
            "max_lifetime = \"{lifetime}\" accepts no token; write the longest lifetime of your tokens, such as \"1h\", or remove it"
        );
    }
    Ok(())
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
pub(super) fn fetch_error(error: FetchError) -> anyhow::Error {
    let FetchError::Settings(error) = error else {
        return error.into();
    };
    match error {
        FetchSettingsError::CaFileUnreadable { kind, .. } => {
            anyhow!("ca_file cannot be read ({kind}); name a PEM file")
        }
        FetchSettingsError::CaFileTooLarge { .. } => {
            anyhow!("ca_file has more than 4 MiB; name another file")
        }
        FetchSettingsError::CaFileInvalid { .. } => {
            anyhow!("ca_file has no usable certificate; name a PEM file that has BEGIN CERTIFICATE")
        }
        FetchSettingsError::Proxy => {
            anyhow!("proxy is not an http or https URL with a host; correct it")
        }
        other => other.into(),
    }
}

fn algorithm(name: &str) -> anyhow::Result<Algorithm> {
    name.parse().with_context(|| {
        let known = Algorithm::ALL.map(Algorithm::as_str).join(", ");
        let meant = respelled(name, &Algorithm::ALL.map(Algorithm::as_str));
        format!("algorithms has {name:?}; {meant}known are {known}")
    })
}

fn keys(issuer: &Issuer, errors: &mut Diagnostics<'_>) -> Option<KeySource> {
    match (&issuer.jwks_uri, &issuer.jwks_file) {
        (Some(_), Some(_)) => {
            errors.add(
                "jwks_file",
                "jwks_uri and jwks_file are both set; remove one",
            );
            None
        }
        (Some(uri), None) => errors.take("jwks_uri", key_uri(uri)),
        (None, Some(file)) => errors
            .take("jwks_file", key_file(file))
            .map(KeySource::Fixed),
        (None, None) => Some(KeySource::Discovered),
    }
}

fn key_uri(text: &str) -> anyhow::Result<KeySource> {
    let shown = shown_url(text);
    let uri = Url::parse(text)
        .with_context(|| format!("jwks_uri = {shown:?} is not a URL; write one with https"))?;
    ensure!(
        is_https_or_loopback_http(&uri),
        "jwks_uri = {shown:?} is neither https nor http on loopback; use https"
    );
    Ok(KeySource::Uri(uri))
}

fn key_file(file: &Path) -> anyhow::Result<JwkSet> {
    let text = file.to_string_lossy();
    let is_web = Url::parse(&text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    ensure!(
        !is_web,
        "jwks_file = {:?} is a URL; write it as jwks_uri, or remove jwks_file, because the metadata of the issuer names its keys",
        shown_url(&text)
    );
    let text = files::read("jwks_file", file)?;
    let set = JwkSet::parse(&text).with_context(|| {
        format!(
            "jwks_file = {:?} is not a JWK set; save the document at the issuer's jwks_uri there",
            file.display()
        )
    })?;
    ensure!(
        !set.keys.is_empty(),
        "jwks_file = {:?} has no public key that can be used; save the document at the issuer's jwks_uri there",
        file.display()
    );
    let count = set.keys.len() + set.rejected.len();
    ensure!(
        count <= MAX_KEYS,
        "jwks_file = {:?} has {count} keys; remove those with which no tokens are signed, so that at most {MAX_KEYS} remain",
        file.display()
    );
    Ok(set)
}
