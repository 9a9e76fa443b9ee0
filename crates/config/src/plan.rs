//! The plan: the validated configuration, before anything starts.

mod admin;
mod audiences;
mod audit;
mod broker;
mod contents;
mod egress;
mod entra;
mod errors;
mod file_version;
mod files;
mod fingerprint;
mod folded;
mod introspection;
mod issuers;
mod keycloak_pages;
mod known_issuers;
mod limits;
mod look_alikes;
mod rates;
#[cfg_attr(not(feature = "redis"), path = "plan/replicas/without_redis.rs")]
mod replicas;
mod resources;
mod secret_contents;
mod secret_files;
mod sessions;
mod state_dir;
#[cfg(test)]
mod tests;
mod tls;
mod traces;
mod unix_socket;
mod upstream;
mod url_fix;
mod warnings;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context as _, bail, ensure};
use portcullis_guard::OriginPolicy;
use portcullis_metadata::syntax::is_https_or_loopback_http;
use portcullis_telemetry::ExportSettings;
use url::Url;

use crate::{
    Config, Diagnostic, Diagnostics, KeyPath, Span,
    file::{Limits, Session},
    placeholders, shown_url,
};

pub use admin::AdminPlan;
pub use audit::{AuditPlan, keys as audit_keys};
pub use broker::{BrokerPlan, redirect_uri_setting};
pub use contents::Contents;
pub use errors::all_errors;
pub use file_version::FileVersion;
pub use files::content as file_content;
pub use fingerprint::Fingerprint;
pub use issuers::IssuerPlan;
pub use known_issuers::provider as provider_of_issuer;
pub use rates::RatesPlan;
pub use replicas::ReplicasPlan;
pub use resources::ResourcePlan;
pub use secret_files::secret_file_warning;
pub use sessions::{KeySources, SessionPlan};
pub use tls::{Invalidity, Loaded, TlsFiles, Validity, date};
pub use upstream::UpstreamPlan;
pub use warnings::{has_public_host, is_public_address};

use audiences::Endpoints;

/// The path of the liveness report.
pub const HEALTH: &str = "/healthz";
/// The path of the readiness report, which lists the usable issuers.
pub const READY: &str = "/readyz";
/// Paths that no endpoint can have.
const RESERVED_PATHS: &[&str] = &[HEALTH, READY];

/// The maximum number of worker threads.
const MAX_WORKERS: usize = 256;
/// The longest `shutdown_delay` and `shutdown_timeout`.
const LONGEST_SHUTDOWN: Span = Span::secs(24 * 60 * 60);
/// The maximum size of a request's head without the access token, in bytes.
const HEAD_BESIDE_TOKEN: usize = 16 << 10;
/// The URL with which the other parts are validated if `base_url` is invalid.
const SUBSTITUTE_URL: &str = "https://localhost";

/// A validated configuration.
pub struct Plan {
    /// The address of the listener of clients.
    pub listen: SocketAddr,
    /// The number of worker threads.
    pub workers: usize,
    /// How long the server is reported as not ready before it stops accepting connections.
    pub shutdown_delay: Duration,
    /// How long requests in progress can continue after that.
    pub shutdown_timeout: Duration,
    /// `None` if the listener uses plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The limits of connections, messages and tokens, all in their ranges.
    pub limits: Limits,
    /// The rate limits of addresses and principals.
    pub rates: RatesPlan,
    /// The sessions.
    pub session: SessionPlan,
    /// `None` if there is one replica.
    pub replicas: Option<ReplicasPlan>,
    /// The directory of session keys and ended sessions. `None` if they are kept in memory only.
    pub state_dir: Option<PathBuf>,
    /// The issuers, in the order of the configuration.
    pub issuers: Vec<IssuerPlan>,
    /// `None` without an authorization server of its own.
    pub broker: Option<BrokerPlan>,
    /// The resources, in the order of the configuration.
    pub resources: Vec<ResourcePlan>,
    /// The accepted `Host` and `Origin` values on paths that belong to no resource.
    pub origins: OriginPolicy,
    /// `None` without an audit trail.
    pub audit: Option<AuditPlan>,
    /// `None` without a listener for administrators.
    pub admin: Option<AdminPlan>,
    /// `None` without traces.
    pub traces: Option<ExportSettings>,
    /// The fingerprint of the settings that all resources share.
    pub shared: Fingerprint,
    /// The content of the files and secrets of issuers and resources.
    pub contents: Contents,
    /// Settings that work but should be changed.
    pub warnings: Vec<Diagnostic>,
    /// What `check` explains about this configuration: what to register at its providers,
    /// and whether clients' addresses are known.
    pub notes: Vec<String>,
}

impl Plan {
    /// Validates a configuration. Reads the files that it names, and opens no connection and no
    /// port.
    ///
    /// # Errors
    /// Fails when a value is invalid, with an error for each. It names the key and the fix. A value
    /// with several faults has an error for the first.
    pub fn new(config: &Config) -> Result<Self, Vec<Diagnostic>> {
        Diagnostics::collect(|errors| Self::collect(config, errors))
            .map_err(|errors| placeholders::as_reason(config, errors))
    }

    /// Validates every part, so that all errors are found. Parts that depend on an invalid one are
    /// validated with a valid substitute, so that each error appears once.
    fn collect(config: &Config, errors: &mut Diagnostics<'_>) -> Option<Self> {
        // Before the files are read, so that a later change is noticed.
        let contents = Contents::of(config);
        let base_url = errors.take("base_url", base_url(&config.base_url));
        let sound_url = base_url
            .clone()
            .or_else(|| Url::parse(SUBSTITUTE_URL).ok())?;
        let sound_limits = if limits::check(&config.limits, errors) {
            config.limits.clone()
        } else {
            Limits::default()
        };
        let workers = errors.take("workers", workers(config.workers));
        let [delay, timeout] = [
            ("shutdown_delay", config.shutdown_delay),
            ("shutdown_timeout", config.shutdown_timeout),
        ]
        .map(|(key, time)| errors.take(key, shutdown_time(key, time)));
        let tls = optional(config.tls.as_ref(), |files| {
            TlsFiles::for_clients(
                files,
                &sound_url,
                !config.trusted_proxies.is_empty(),
                errors,
            )
        });
        let rates = rates::plan(config, errors);
        let session = sessions::plan(&config.session, &mut errors.table("session"));
        let sound_session = if session.is_some() {
            config.session.clone()
        } else {
            Session::default()
        };
        let replicas = optional(config.shared.as_ref(), |shared| {
            replicas::plan(
                shared,
                &sound_url,
                &sound_session,
                config.broker.is_some(),
                &mut errors.table("shared"),
            )
        });
        let state_dir = errors.take(
            "state_dir",
            state_dir::plan(config.state_dir.as_deref(), &sound_url),
        );
        let endpoints = Endpoints::new(config, &sound_url);
        let issuers = issuers::plan(&config.issuer, &endpoints, errors);
        let broker_issuer = broker::issuer(&sound_url).ok()?;
        let resources = resources::plan(
            config,
            &sound_url,
            &issuers,
            config.broker.as_ref().map(|_| &broker_issuer),
            &sound_limits,
            errors,
        );
        let broker = optional(config.broker.as_ref(), |broker| {
            broker::plan(
                config,
                broker,
                &broker_issuer,
                resources.as_deref(),
                &mut errors.table("broker"),
            )
        });
        let origins = resources::origins(&config.resource.iter().collect::<Vec<_>>(), &sound_url);
        let audit = optional(config.audit.as_ref(), |audit| {
            audit::plan(audit, &mut errors.table("audit"))
        });
        if let (Some(Some(audit)), Some(directory)) = (&audit, &state_dir) {
            audit::check_key(
                audit,
                directory.as_deref(),
                config.state_dir.as_deref(),
                errors,
            );
        }
        let traces = optional(config.traces.as_ref(), |traces| {
            traces::plan(traces, &mut errors.table("traces"))
        });
        let admin = optional(config.admin.as_ref(), |admin| {
            admin::plan(admin, config.listen, &mut errors.table("admin"))
        });
        let resources = resources?;
        let session = session?;
        let broker = broker?;
        let mut notes = entra::notes(&config.issuer);
        notes.extend(broker.iter().flat_map(broker::notes));
        let base_url = base_url?;
        notes.extend(warnings::shared_address::note(config, &base_url));
        let mut warnings = warnings::warnings(config, &base_url, &resources);
        let of_replicas = config
            .shared
            .as_ref()
            .map(|shared| replicas::warnings(shared, &session))
            .unwrap_or_default();
        warnings.extend(
            of_replicas
                .iter()
                .map(|text| Diagnostic::new(&KeyPath::default(), text)),
        );
        warnings.extend(sessions::warnings(&config.session));
        let issuers = issuers.into_iter().collect::<Option<Vec<_>>>()?;
        warnings.extend(egress::warnings(
            &issuers,
            broker.as_ref(),
            traces.iter().flatten().next(),
        ));
        warnings.extend(introspection::warnings(&config.issuer));
        warnings.extend(config.audit.as_ref().and_then(audit::warning));
        warnings.extend(config.traces.as_ref().and_then(traces::warning));
        if let (Some(configured), Some(broker), Some(directory)) =
            (&config.broker, &broker, &state_dir)
        {
            let is_kept = directory.is_some() || config.shared.is_some();
            warnings.extend(broker::warnings(
                config, configured, broker, &resources, is_kept,
            ));
        }
        let of_administrators = admin
            .iter()
            .flatten()
            .filter_map(|admin| admin.tls.as_ref());
        warnings.extend(tls::warnings(tls.iter().flatten().chain(of_administrators)));
        warnings.extend(
            secret_files::warnings(config)
                .iter()
                .chain(&secret_contents::warnings(config))
                .map(|text| Diagnostic::new(&KeyPath::default(), text)),
        );
        Some(Self {
            listen: config.listen,
            workers: workers?,
            shutdown_delay: delay?,
            shutdown_timeout: timeout?,
            tls: tls?,
            limits: config.limits.clone(),
            rates: rates?,
            session,
            replicas: replicas?,
            state_dir: state_dir?,
            issuers,
            broker,
            resources,
            // The resources have the errors of their origins.
            origins: origins.ok()?,
            audit: audit?,
            admin: admin?,
            traces: traces?,
            warnings,
            notes,
            shared: fingerprint::shared(config),
            contents,
        })
    }

    /// Returns the maximum size of a request's head in bytes, on either HTTP version.
    pub fn max_head(&self) -> usize {
        self.limits.max_token + HEAD_BESIDE_TOKEN
    }
}

/// Validates a table if it is configured. Returns `None` if it is invalid, and `Some(None)` if it
/// is not configured.
fn optional<T, U>(
    configured: Option<&T>,
    validate: impl FnOnce(&T) -> Option<U>,
) -> Option<Option<U>> {
    match configured {
        Some(table) => validate(table).map(Some),
        None => Some(None),
    }
}

/// Returns the state directory of a configuration. `None` if everything is kept in memory.
///
/// # Errors
/// Fails when `state_dir` is empty or `base_url` is invalid.
pub fn state_dir_of(config: &Config) -> Result<Option<PathBuf>, Vec<Diagnostic>> {
    Diagnostics::collect(|errors| {
        let base_url = errors.take("base_url", base_url(&config.base_url))?;
        errors.take(
            "state_dir",
            state_dir::plan(config.state_dir.as_deref(), &base_url),
        )
    })
}

/// Parses `base_url`. Fails when it is not the URL of one host without path, or neither https nor
/// http on loopback.
fn base_url(text: &str) -> anyhow::Result<Url> {
    let shown = shown_url(text);
    let fix = url_fix::origin_fix(text, "https://mcp.example.com");
    let url =
        Url::parse(text).with_context(|| format!("base_url = {shown:?} is not a URL; {fix}"))?;
    ensure!(
        url.username().is_empty() && url.password().is_none(),
        "base_url contains a user name or a password; remove everything before the `@`"
    );
    let has_slashes = text
        .split_once(':')
        .is_some_and(|(_, rest)| rest.starts_with("//") && !rest.starts_with("///"));
    ensure!(
        has_slashes && !url.host_str().is_some_and(|host| host.contains('*')),
        "base_url = {shown:?} is not the URL of one host; {fix}"
    );
    if let Some(problem) = warnings::unspecified_host(&url).filter(|_| url.scheme() == "http") {
        bail!("base_url = {shown:?} {problem}");
    }
    ensure!(
        is_https_or_loopback_http(&url),
        "base_url = {shown:?} is neither https nor http on loopback; use https (a proxy in front may terminate TLS)"
    );
    let superfluous = [
        (url.path() != "/", "put the path into `resource.endpoint`"),
        (url.query().is_some(), "remove the query"),
        (url.fragment().is_some(), "remove the fragment"),
    ];
    let fixes: Vec<&str> = superfluous
        .into_iter()
        .filter_map(|(is_there, fix)| is_there.then_some(fix))
        .collect();
    ensure!(
        fixes.is_empty(),
        "base_url = {shown:?} has more than scheme, host and port; {}",
        fixes.join(", and ")
    );
    Ok(url)
}

fn shutdown_time(key: &str, time: Span) -> anyhow::Result<Duration> {
    ensure!(
        time <= LONGEST_SHUTDOWN,
        "{key} = \"{time}\" is outside 0s to 24h"
    );
    Ok(time.0)
}

/// Returns the number of worker threads. Default: the number of cores.
fn workers(configured: Option<usize>) -> anyhow::Result<usize> {
    match configured {
        Some(count @ 1..=MAX_WORKERS) => Ok(count),
        Some(count) => bail!("workers = {count} is outside 1 to {MAX_WORKERS}"),
        None => Ok(std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MAX_WORKERS)),
    }
}
