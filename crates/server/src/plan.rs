//! The plan: the validated configuration, before anything starts.

mod audit;
mod entra;
mod introspection;
mod issuers;
mod rates;
mod resources;
mod sessions;
#[cfg(test)]
mod tests;
mod tls;
mod upstream;
mod warnings;

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, bail, ensure};
use portcullis_guard::OriginPolicy;
use portcullis_metadata::is_https_or_loopback_http;
use url::Url;

use crate::config::{Config, Limits, Span};

pub(crate) use audit::AuditPlan;
pub(crate) use issuers::IssuerPlan;
pub(crate) use rates::RatesPlan;
pub(crate) use resources::ResourcePlan;
pub(crate) use sessions::{KeySources, SessionPlan};
pub(crate) use tls::TlsFiles;
pub(crate) use upstream::UpstreamPlan;

/// The path of the liveness report.
pub(crate) const HEALTH: &str = "/healthz";
/// The path of the readiness report, which lists the usable issuers.
pub(crate) const READY: &str = "/readyz";
/// Paths that no endpoint can have.
const RESERVED_PATHS: &[&str] = &[HEALTH, READY];

/// The maximum number of worker threads.
const MAX_WORKERS: usize = 256;
/// The maximum size of a request's head without the access token, in bytes.
const HEAD_BESIDE_TOKEN: usize = 16 << 10;

/// A validated configuration.
pub(crate) struct Plan {
    pub(crate) listen: SocketAddr,
    pub(crate) workers: usize,
    pub(crate) shutdown_delay: Duration,
    pub(crate) shutdown_timeout: Duration,
    /// `None` if the listener uses plain HTTP.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) limits: Limits,
    pub(crate) rates: RatesPlan,
    pub(crate) session: SessionPlan,
    pub(crate) issuers: Vec<IssuerPlan>,
    pub(crate) resources: Vec<ResourcePlan>,
    /// The accepted `Host` and `Origin` values on paths that belong to no resource.
    pub(crate) origins: OriginPolicy,
    /// `None` without an audit trail.
    pub(crate) audit: Option<AuditPlan>,
    /// Settings that work but should be changed.
    pub(crate) warnings: Vec<String>,
    /// What `check` explains about the providers of this configuration.
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Validates a configuration. Reads the files that it names, and opens no connection and no port.
    ///
    /// # Errors
    /// Fails when a value is invalid. The message names the key and the fix.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let base_url = base_url(&config.base_url)?;
        check_limits(&config.limits)?;
        let issuers = issuers::plan(&config.issuer)?;
        let resources = resources::plan(config, &base_url, &issuers)?;
        let warnings = warnings::warnings(config, &base_url, &resources);
        Ok(Self {
            listen: config.listen,
            workers: workers(config.workers)?,
            shutdown_delay: config.shutdown_delay.0,
            shutdown_timeout: config.shutdown_timeout.0,
            tls: config.tls.as_ref().map(|files| TlsFiles::new(files, &base_url)).transpose()?,
            limits: config.limits.clone(),
            rates: rates::plan(config)?,
            session: sessions::plan(&config.session)?,
            issuers,
            resources,
            origins: resources::origins(&config.resource.iter().collect::<Vec<_>>(), &base_url)?,
            audit: config.audit.as_ref().map(audit::plan).transpose()?,
            warnings,
            notes: entra::notes(&config.issuer),
        })
    }

    /// Returns the maximum size of a request's head in bytes, on either HTTP version.
    pub(crate) fn max_head(&self) -> usize {
        self.limits.max_token + HEAD_BESIDE_TOKEN
    }
}

fn base_url(text: &str) -> anyhow::Result<Url> {
    let url = Url::parse(text).with_context(|| format!("base_url = {text:?} is not a URL"))?;
    ensure!(
        is_https_or_loopback_http(&url),
        "base_url = {text:?} is plain http to another host than loopback; use https (a proxy in front may terminate TLS)"
    );
    ensure!(
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty(),
        "base_url = {text:?} has more than scheme, host and port; put the path into `resource.endpoint`"
    );
    Ok(url)
}

fn workers(configured: Option<usize>) -> anyhow::Result<usize> {
    match configured {
        Some(count @ 1..=MAX_WORKERS) => Ok(count),
        Some(count) => bail!("workers = {count} is outside 1 to {MAX_WORKERS}"),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS)),
    }
}

fn check_limits(limits: &Limits) -> anyhow::Result<()> {
    let within = |name: &str, value: usize, low: usize, high: usize| {
        ensure!((low..=high).contains(&value), "limits.{name} = {value} is outside {low} to {high}");
        Ok(())
    };
    within("max_body", limits.max_body, 1 << 10, 1 << 30)?;
    within("body_budget", limits.body_budget, limits.max_body, 1 << 36)?;
    within("max_depth", limits.max_depth, 8, 127)?;
    within("max_token", limits.max_token, 1 << 10, 64 << 10)?;
    within("max_connections", limits.max_connections, 1, 1_000_000)?;
    within("upstream_connections", limits.upstream_connections.unwrap_or(limits.max_connections), 1, 1_000_000)?;
    within("max_headers", limits.max_headers, 16, 10_000)?;
    within("max_streams", limits.max_streams as usize, 1, 10_000)?;
    within("max_resets", limits.max_resets, 1, 10_000)?;
    within("cached_tokens", limits.cached_tokens, 16, 10_000_000)?;
    within("in_flight_per_principal", limits.in_flight_per_principal, 1, 1_000_000)?;
    let lasts = |name: &str, span: Span, high: Span| {
        ensure!((Span::secs(1)..=high).contains(&span), "limits.{name} = \"{span}\" is outside 1s to {high}");
        Ok(())
    };
    lasts("header_timeout", limits.header_timeout, Span::secs(600))?;
    lasts("body_pause", limits.body_pause, Span::secs(600))?;
    lasts("body_timeout", limits.body_timeout, Span::secs(60 * 60))
}
