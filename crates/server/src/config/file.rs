//! The structure of the configuration file. `crate::plan` validates what the values mean.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use portcullis_endpoint::EndpointSettings;
use portcullis_guard::{ConcurrencyLimiter, RateLimiter};
use portcullis_session::SessionSettings;
use portcullis_verifier::VerifierSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Span, secret::SecretSource};

mod admin;
mod issuer;
mod resource;
mod shared;
mod traces;

pub(crate) use admin::{ADMIN_TOKEN_VARIABLE, Admin, AdminListen};
pub(crate) use issuer::{IntrospectionAuth, Issuer, Validation};
pub(crate) use resource::{Authorization, Claim, Resource, Route, Rule, Sessions, Upstream};
pub(crate) use shared::SharedStore;
pub(crate) use traces::{Traces, TracesClient};

/// The configuration file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The address and port to listen on. A name such as `localhost` is resolved.
    #[serde(default = "default_listen", deserialize_with = "super::listen_address::deserialize")]
    #[schemars(with = "String")]
    pub(crate) listen: SocketAddr,
    /// The scheme, host and port under which clients reach this server: `https`, or `http` on loopback.
    #[schemars(example = "https://mcp.example.com")]
    pub(crate) base_url: String,
    /// The number of worker threads. Default: the number of cores.
    #[schemars(example = 4)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<usize>,
    /// How long the server still accepts and serves after the signal to shut down, while `/readyz` answers 503.
    #[serde(default = "default_shutdown_delay")]
    pub(crate) shutdown_delay: Span,
    /// How long a shutdown waits for requests in progress.
    #[serde(default = "default_shutdown_timeout")]
    pub(crate) shutdown_timeout: Span,
    /// When the configuration is read again.
    #[serde(default)]
    pub(crate) reload: Reload,
    /// Where session keys, ended sessions and last uses are kept over restarts; `off` for nowhere. Default: a directory of
    /// this user.
    #[schemars(example = "/var/lib/portcullis")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Allows `auth = "none"` with a listener that is not on loopback.
    #[serde(default)]
    pub(crate) dangerous_allow_unauthenticated_network: bool,
    /// The addresses and networks of the proxies whose forwarding header is trusted.
    #[schemars(example = ["10.0.0.0/8"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) trusted_proxies: Vec<String>,
    /// The header in which trusted proxies report the client's address.
    #[serde(default)]
    pub(crate) trusted_proxy_header: ForwardedHeader,
    /// TLS on the listener. Default: plain HTTP, for loopback or behind a proxy that terminates TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<Tls>,
    /// The authorization servers whose tokens are accepted.
    #[serde(default)]
    pub(crate) issuer: Vec<Issuer>,
    /// The protected endpoints.
    pub(crate) resource: Vec<Resource>,
    /// The sessions of all resources.
    #[serde(default)]
    pub(crate) session: Session,
    /// What replicas share. Default: there is one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared: Option<SharedStore>,
    /// Limits of bodies, heads, connections, streams and rates.
    #[serde(default)]
    pub(crate) limits: Limits,
    /// The audit trail. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) audit: Option<Audit>,
    /// The listener for administrators. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) admin: Option<Admin>,
    /// Where spans of sampled requests are sent. Default: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traces: Option<Traces>,
}

impl Config {
    /// Returns the files that issuers and resources name.
    pub(crate) fn files(&self) -> Vec<&Path> {
        let of_issuers = self.issuer.iter().flat_map(|issuer| {
            let secret = issuer.client_secret.as_ref().and_then(SecretSource::file);
            [issuer.jwks_file.as_deref(), issuer.ca_file.as_deref(), secret]
        });
        let of_resources = self.resource.iter().map(|resource| resource.upstream_ca_file.as_deref());
        of_issuers.chain(of_resources).flatten().collect()
    }
}

/// When the configuration is read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reload {
    /// At SIGHUP.
    #[default]
    Signal,
    /// At SIGHUP, and when the file or one that it names changes.
    Watch,
}

/// The header in which a proxy reports its client's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum ForwardedHeader {
    /// `X-Forwarded-For`.
    #[default]
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// `[tls]`: the listener's certificate and key files.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// A PEM file with the certificate chain, the server's certificate first.
    #[schemars(example = "/etc/portcullis/tls/fullchain.pem")]
    pub(crate) certificates: PathBuf,
    /// A PEM file with the certificate's private key.
    #[schemars(example = "/etc/portcullis/tls/key.pem")]
    pub(crate) key: PathBuf,
}

/// `[session]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Session {
    /// The time after which an unused session ends.
    pub(crate) idle_timeout: Span,
    /// The time after which any session ends.
    pub(crate) lifetime: Span,
    /// The maximum number of sessions.
    pub(crate) max_total: usize,
    /// The maximum number of sessions of one owner.
    pub(crate) max_per_owner: usize,
    /// The status of a request for an ended session by its owner: 400 or 404.
    pub(crate) ended_status: u16,
    /// The keys that seal session identifiers, the key of new identifiers first. Default: those of the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = [SecretSource::File("/run/secrets/session-keys".into())])]
    pub(crate) keys: Option<Vec<SecretSource>>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            idle_timeout: Span(SessionSettings::DEFAULT_IDLE_TIMEOUT),
            lifetime: Span(SessionSettings::DEFAULT_LIFETIME),
            max_total: SessionSettings::DEFAULT_MAX_TOTAL,
            max_per_owner: SessionSettings::DEFAULT_MAX_PER_OWNER,
            ended_status: 400,
            keys: None,
        }
    }
}

/// `[limits]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// The maximum size of a request body in bytes.
    pub(crate) max_body: usize,
    /// The maximum size of all request bodies in memory in bytes.
    pub(crate) body_budget: usize,
    /// The maximum nesting depth of the JSON in a request body.
    pub(crate) max_depth: usize,
    /// The maximum size of an access token in bytes.
    pub(crate) max_token: usize,
    /// The maximum number of open connections.
    pub(crate) max_connections: usize,
    /// The maximum number of open connections to each upstream. Default: `max_connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 1000)]
    pub(crate) upstream_connections: Option<usize>,
    /// The maximum number of header fields of a request.
    pub(crate) max_headers: usize,
    /// The time limit for a request's head, and for an idle connection.
    pub(crate) header_timeout: Span,
    /// The longest pause within a request body.
    pub(crate) body_pause: Span,
    /// The time limit for a whole request body, counted from its first pause.
    pub(crate) body_timeout: Span,
    /// The maximum number of open HTTP/2 streams on a connection.
    pub(crate) max_streams: u32,
    /// The maximum number of HTTP/2 streams on a connection that the client resets before they are processed.
    pub(crate) max_resets: usize,
    /// The maximum number of cached verified tokens of each resource.
    pub(crate) cached_tokens: usize,
    /// The rate limit per client address, checked before the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = RateLimit { requests: 600, per: Span::secs(60) })]
    pub(crate) per_address: Option<RateLimit>,
    /// The rate limit per principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = RateLimit { requests: 300, per: Span::secs(60) })]
    pub(crate) per_principal: Option<RateLimit>,
    /// The number of counters of each rate limit.
    pub(crate) rate_entries: usize,
    /// The maximum number of requests in progress per principal. Open event streams are limited separately.
    pub(crate) in_flight_per_principal: usize,
}

/// A number of requests per period.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    /// The number of requests in each period.
    #[schemars(example = 60)]
    pub(crate) requests: u32,
    /// The period.
    #[schemars(example = "1m")]
    pub(crate) per: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: EndpointSettings::DEFAULT_MAX_BODY,
            body_budget: EndpointSettings::DEFAULT_BODY_BUDGET,
            max_depth: EndpointSettings::DEFAULT_MAX_DEPTH,
            max_token: VerifierSettings::DEFAULT_MAX_TOKEN_BYTES,
            max_connections: 10_000,
            upstream_connections: None,
            max_headers: 100,
            header_timeout: Span::secs(30),
            body_pause: Span::secs(30),
            body_timeout: Span::secs(5 * 60),
            max_streams: 100,
            max_resets: 20,
            cached_tokens: VerifierSettings::DEFAULT_CACHE_ENTRIES,
            per_address: None,
            per_principal: None,
            rate_entries: RateLimiter::DEFAULT_CAPACITY,
            in_flight_per_principal: ConcurrencyLimiter::DEFAULT_REQUESTS,
        }
    }
}

/// `[audit]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    /// Where the records are written: `"stdout"` or `{ file = "/path" }`.
    #[schemars(example = &"stdout")]
    pub(crate) target: AuditTarget,
    /// The maximum size of queued records in bytes.
    #[serde(default = "default_audit_queue")]
    pub(crate) queue: usize,
    /// The interval of usage records. With zero, usage is recorded at the end only.
    #[serde(default = "default_usage_interval")]
    pub(crate) usage_interval: Span,
    /// The number of rows of principal, resource and tool that are counted separately.
    #[serde(default = "default_usage_rows")]
    pub(crate) usage_rows: usize,
    /// The key of the chain of records. Default: one that is generated in the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<SecretSource>,
    /// The size in bytes at which the file is rotated. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 104_857_600)]
    pub(crate) rotate_size: Option<u64>,
    /// The age at which the file is rotated. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "24h")]
    pub(crate) rotate_age: Option<Span>,
    /// The number of rotated files that are kept. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 30)]
    pub(crate) keep: Option<usize>,
}

/// Where the audit trail is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditTarget {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

fn default_audit_queue() -> usize {
    64 << 20
}

fn default_usage_interval() -> Span {
    Span::secs(5 * 60)
}

fn default_usage_rows() -> usize {
    10_000
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 3000))
}

fn default_shutdown_delay() -> Span {
    Span::secs(0)
}

fn default_shutdown_timeout() -> Span {
    Span::secs(10)
}
