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

/// The reason code of a drop of tokens that holds in one process and is not confirmed by all
/// replicas.
pub const DROP_NOT_SHARED: &str = "admin.drop_not_shared";

/// The maximum number of sessions on one page.
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
