//! The messages of the listener for administrators, which the server and `portcullis admin` share.

use serde::{Deserialize, Serialize};

/// The path of the list of sessions.
pub const SESSIONS: &str = "/v1/sessions";
/// The path of the metrics.
pub const METRICS: &str = "/metrics";
/// The path that ends sessions.
pub const END_SESSIONS: &str = "/v1/sessions/end";
/// The path that drops an issuer's cached tokens.
pub const DROP_TOKENS: &str = "/v1/tokens/drop";

/// The path of the list of the broker's grants.
pub const GRANTS: &str = "/v1/grants";
/// The path that ends grants of the broker.
pub const END_GRANTS: &str = "/v1/grants/end";

/// The reason code of a drop of tokens that holds in one process and is not confirmed by all
/// replicas.
pub const DROP_NOT_SHARED: &str = "admin.drop_not_shared";

/// The maximum number of sessions or grants on one page.
pub const MAX_PAGE: usize = 1000;

/// A page of the list of sessions.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionList {
    /// The sessions of this page.
    pub sessions: Vec<SessionEntry>,
    /// The value of `after` for the next page; `None` on the last one.
    pub next: Option<String>,
    /// The number of sessions in the table of this process, listed or not.
    pub total: usize,
}

/// A session.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionEntry {
    /// The hash by which logs and audit records name the session.
    pub session: String,
    /// The resource to which it belongs.
    pub resource: String,
    /// The issuer of the owner's tokens; `None` without authentication.
    pub issuer: Option<String>,
    /// The subject (`sub`).
    pub subject: Option<String>,
    /// The client (`client_id`).
    pub client: Option<String>,
    /// The time at which the session was created (RFC 3339).
    pub created: String,
    /// The seconds since then.
    pub age_seconds: u64,
    /// The seconds since the last use by this process; 0 while the session is in use.
    pub unused_seconds: u64,
    /// Whether a request or an event stream uses it now.
    pub in_use: bool,
    /// The number of open event streams.
    pub streams: usize,
    /// Whether another process opened the session, or this one before a restart.
    pub adopted: bool,
    /// The negotiated revision of MCP, if it is known.
    pub protocol_version: Option<String>,
}

/// Which sessions end: one by its hash, or all of a subject, of a client, or of a subject with a
/// client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EndRequest {
    /// The hash of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The subject (`sub`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The client (`client_id`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The issuer of the subject or the client. Default: each issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// A note for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The result of ending sessions. The end is recorded.
#[derive(Debug, Serialize, Deserialize)]
pub struct EndResult {
    /// The number of sessions that ended in the table of this process. Sessions in no table end,
    /// too, and are not counted.
    pub sessions_ended: usize,
    /// The number of event streams that ended in this process.
    pub streams_ended: usize,
}

/// A page of the list of grants.
#[derive(Debug, Serialize, Deserialize)]
pub struct GrantList {
    /// The grants of this page. There can be none, although a later page has some.
    pub grants: Vec<GrantEntry>,
    /// The number of grants that were examined for this page and cannot be read: the key with which
    /// they were stored has been removed, or they were changed.
    pub unreadable: usize,
    /// The value of `after` for the next page; `None` on the last one.
    pub next: Option<String>,
}

/// A grant of the broker.
#[derive(Debug, Serialize, Deserialize)]
pub struct GrantEntry {
    /// The identifier, which is the claim `sid` of its access tokens.
    pub grant: String,
    /// The subject (`sub`).
    pub subject: String,
    /// The client (`client_id`).
    pub client: String,
    /// The name of the provider at which the user signed in, if it is still known.
    pub provider: Option<String>,
    /// The scopes that the user approved, separated by spaces.
    pub scopes: String,
    /// The resource.
    pub resource: Option<String>,
    /// The time at which the client got its first token (RFC 3339).
    pub begun: String,
    /// The seconds since then.
    pub age_seconds: u64,
    /// The time at which the client got its last token (RFC 3339).
    pub last_used: String,
    /// The seconds since then.
    pub unused_seconds: u64,
}

/// Which grants end: one by its identifier, or all of a subject, of a provider, or of both. A
/// client restricts those of a subject or a provider.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EndGrantsRequest {
    /// The identifier of the grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The subject (`sub`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The client (`client_id`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The value of `next` in the previous result. Default: begin with the first grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// A note for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The result of ending grants. The end is recorded.
#[derive(Debug, Serialize, Deserialize)]
pub struct EndGrantsResult {
    /// The number of grants that ended.
    pub grants_ended: usize,
    /// As in [`GrantList`].
    pub unreadable: usize,
    /// The value of `after` for the next request; `None` if all grants were examined.
    pub next: Option<String>,
}

/// Whose cached tokens are dropped.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropRequest {
    /// The issuer, as configured.
    pub issuer: String,
    /// A note for the audit trail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The result of dropping cached tokens.
#[derive(Debug, Serialize, Deserialize)]
pub struct DropResult {
    /// The number of tokens that left the cache of this process.
    pub tokens_dropped: usize,
    /// The number of event streams that ended in this process.
    pub streams_ended: usize,
    /// Whether the issuer's keys and metadata were fetched again. If not, the former ones remain in
    /// use.
    pub keys_fetched: bool,
}

/// A response with an error status.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorResponse {
    /// The error.
    pub error: ErrorDetails,
}

/// An error.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// The stable reason code.
    pub code: String,
    /// The text for the administrator.
    pub message: String,
}
