use crate::Span;
use portcullis_endpoint::EndpointSettings;
use portcullis_guard::limit::{ConcurrencyLimiter, RateLimiter};
use portcullis_verifier::VerifierSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[limits]`: limits of bodies, heads, connections, streams and rates, for all resources together.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum size of a request body in bytes.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub max_body: usize,
    /// The maximum size of all request bodies in memory in bytes.
    #[schemars(range(min = 1024, max = 68_719_476_736_u64))]
    pub body_budget: usize,
    /// The maximum nesting depth of the JSON in a request body.
    #[schemars(range(min = 8, max = 127))]
    pub max_depth: usize,
    /// The maximum size of an access token in bytes.
    #[schemars(range(min = 1024, max = 65_536))]
    pub max_token: usize,
    /// The maximum number of open connections.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// The maximum number of open connections to each upstream. Default: `max_connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 1000)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub upstream_connections: Option<usize>,
    /// The maximum number of header fields of a request.
    #[schemars(range(min = 16, max = 10_000))]
    pub max_headers: usize,
    /// The time limit for a request's head, and for an idle connection.
    pub header_timeout: Span,
    /// The longest pause within a request body.
    pub body_pause: Span,
    /// The time limit for a whole request body, counted from its first pause.
    pub body_timeout: Span,
    /// The maximum number of open HTTP/2 streams on a connection.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_streams: u32,
    /// The maximum number of HTTP/2 streams on a connection that the client resets before they are
    /// processed.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_resets: usize,
    /// The maximum number of cached verified tokens of each resource.
    #[schemars(range(min = 16, max = 10_000_000))]
    pub cached_tokens: usize,
    /// The rate limit per client address, checked before the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = RateLimit { requests: 600, per: Span::secs(60) })]
    pub per_address: Option<RateLimit>,
    /// The rate limit of requests without a valid token per client address.
    pub rejected_per_address: RateLimit,
    /// The rate limit per principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = RateLimit { requests: 300, per: Span::secs(60) })]
    pub per_principal: Option<RateLimit>,
    /// The number of counters of each rate limit.
    #[schemars(range(min = 1_000, max = 10_000_000))]
    pub rate_entries: usize,
    /// The maximum number of requests in progress per principal. Open event streams are limited
    /// separately.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight_per_principal: usize,
}

/// A number of requests per period.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// The number of requests in each period.
    #[schemars(example = 60, range(min = 1, max = 1_000_000))]
    pub requests: u32,
    /// The period.
    #[schemars(example = "1m")]
    pub per: Span,
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
            rejected_per_address: RateLimit {
                requests: 6000,
                per: Span::secs(60),
            },
            per_principal: None,
            rate_entries: RateLimiter::DEFAULT_CAPACITY,
            in_flight_per_principal: ConcurrencyLimiter::DEFAULT_REQUESTS,
        }
    }
}
