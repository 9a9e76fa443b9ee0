//! The structure of the configuration file. `crate::plan` validates what the values mean.

use std::{net::SocketAddr, path::PathBuf};

use portcullis_endpoint::EndpointSettings;
use portcullis_guard::{ConcurrencyLimiter, RateLimiter};
use portcullis_session::SessionSettings;
use portcullis_verifier::VerifierSettings;
use serde::{Deserialize, Serialize};

use super::{Span, secret::SecretSource};

mod issuer;
mod resource;

pub(crate) use issuer::{IntrospectionAuth, Issuer, Validation};
pub(crate) use resource::{Authorization, Claim, Resource, Route, Rule, Upstream};

/// The whole file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Address and port to listen on.
    #[serde(default = "default_listen")]
    pub(crate) listen: SocketAddr,
    /// What clients see: scheme and authority, `https` unless loopback.
    pub(crate) base_url: String,
    /// Threads of the data path; the number of cores when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<usize>,
    /// How long the server still accepts and serves after the signal to shut down, while `/readyz` answers 503.
    #[serde(default = "default_shutdown_delay")]
    pub(crate) shutdown_delay: Span,
    /// How long a shutdown waits for requests under way.
    #[serde(default = "default_shutdown_timeout")]
    pub(crate) shutdown_timeout: Span,
    /// Lets `auth = "none"` go together with a listener that is not on loopback.
    #[serde(default)]
    pub(crate) dangerous_allow_unauthenticated_network: bool,
    /// Proxies in front whose word on the client's address is taken: addresses and networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) trusted_proxies: Vec<String>,
    /// The header in which they say it.
    #[serde(default)]
    pub(crate) trusted_proxy_header: ForwardedHeader,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<Tls>,
    #[serde(default)]
    pub(crate) issuer: Vec<Issuer>,
    pub(crate) resource: Vec<Resource>,
    #[serde(default)]
    pub(crate) session: Session,
    #[serde(default)]
    pub(crate) limits: Limits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) audit: Option<Audit>,
}

/// The header in which a proxy says whom it was called by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ForwardedHeader {
    #[default]
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    Forwarded,
}

/// `[tls]`: the files that let the listener speak TLS.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// PEM file with the certificate, and behind it the ones that lead to the root.
    pub(crate) certificates: PathBuf,
    /// PEM file with the certificate's private key.
    pub(crate) key: PathBuf,
}

/// `[session]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Session {
    pub(crate) idle_timeout: Span,
    pub(crate) lifetime: Span,
    pub(crate) max_total: usize,
    pub(crate) max_per_owner: usize,
    /// What the owner of an ended session is answered: 400 or 404.
    pub(crate) ended_status: u16,
    /// What tags identifiers, the key of new ones first; random ones at each start when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Bytes of one request body.
    pub(crate) max_body: usize,
    /// Bytes of all request bodies held at once.
    pub(crate) body_budget: usize,
    /// Nesting of JSON in a request body.
    pub(crate) max_depth: usize,
    /// Bytes of one access token.
    pub(crate) max_token: usize,
    /// Connections open at once.
    pub(crate) max_connections: usize,
    /// Connections open to each upstream; as many as of clients when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_connections: Option<usize>,
    /// Header fields of one request.
    pub(crate) max_headers: usize,
    /// Time for a request's head to arrive, and for a connection to stay idle.
    pub(crate) header_timeout: Span,
    /// How long a client may pause inside a body.
    pub(crate) body_pause: Span,
    /// How long a body may take in all, from its first pause.
    pub(crate) body_timeout: Span,
    /// HTTP/2 streams open at once on one connection.
    pub(crate) max_streams: u32,
    /// HTTP/2 streams that a client may open and reset, before anything is done for them, on one connection.
    pub(crate) max_resets: usize,
    /// Tokens held in the verified-token cache, for each resource.
    pub(crate) cached_tokens: usize,
    /// Requests of each client address, before their token is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_address: Option<RateLimit>,
    /// Requests of each principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_principal: Option<RateLimit>,
    /// How many addresses, and how many principals, are counted apart.
    pub(crate) rate_entries: usize,
    /// Requests of each principal that are in progress at once; open event streams count apart.
    pub(crate) in_flight_per_principal: usize,
}

/// So many requests in so long a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    pub(crate) requests: u32,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    pub(crate) target: AuditTarget,
    /// Bytes of records that wait to be written.
    #[serde(default = "default_audit_queue")]
    pub(crate) queue: usize,
    /// How often is told what was used; only at the end when zero.
    #[serde(default = "default_usage_interval")]
    pub(crate) usage_interval: Span,
    /// Rows of principal, resource and tool that are counted apart.
    #[serde(default = "default_usage_rows")]
    pub(crate) usage_rows: usize,
}

/// Where the audit trail is written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditTarget {
    Stdout,
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
