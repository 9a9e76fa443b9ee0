//! The messages of the listener for administrators, which the server and `portcullis admin` share.

use serde::{Deserialize, Serialize};

/// The path of the list of sessions.
pub(crate) const SESSIONS: &str = "/v1/sessions";
/// The path of the metrics.
pub(crate) const METRICS: &str = "/metrics";
/// The path that ends sessions.
pub(crate) const END_SESSIONS: &str = "/v1/sessions/end";
/// The path that drops an issuer's cached tokens.
pub(crate) const DROP_TOKENS: &str = "/v1/tokens/drop";

/// The reason code of a drop of tokens that holds in one process and is not confirmed by all replicas.
pub(crate) const DROP_NOT_SHARED: &str = "admin.drop_not_shared";

/// The maximum number of sessions on one page.
pub(crate) const MAX_PAGE: usize = 1000;

/// A page of the list of sessions.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<SessionEntry>,
    /// The value of `after` for the next page; `None` on the last one.
    pub(crate) next: Option<String>,
    /// The number of sessions in the table of this process, listed or not.
    pub(crate) total: usize,
}

/// A session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionEntry {
    /// The hash by which logs and audit records name the session.
    pub(crate) session: String,
    pub(crate) resource: String,
    /// The issuer of the owner's tokens; `None` without authentication.
    pub(crate) issuer: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) client: Option<String>,
    /// The time at which the session was created (RFC 3339).
    pub(crate) created: String,
    pub(crate) age_seconds: u64,
    /// The seconds since the last use by this process; 0 while the session is in use.
    pub(crate) unused_seconds: u64,
    pub(crate) in_use: bool,
    /// The number of open event streams.
    pub(crate) streams: usize,
    /// Whether another process opened the session, or this one before a restart.
    pub(crate) adopted: bool,
    pub(crate) protocol_version: Option<String>,
}

/// Which sessions end: one by its hash, or all of a subject, of a client, or of a subject with a client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EndRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    /// The issuer of the subject or the client. Default: each issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<String>,
    /// A note for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// The result of ending sessions. The end is recorded.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EndResult {
    /// The number of sessions that ended in the table of this process. Sessions in no table end, too, and are not counted.
    pub(crate) sessions_ended: usize,
    pub(crate) streams_ended: usize,
}

/// Whose cached tokens are dropped.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DropRequest {
    pub(crate) issuer: String,
    /// A note for the audit trail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// The result of dropping cached tokens.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DropResult {
    pub(crate) tokens_dropped: usize,
    pub(crate) streams_ended: usize,
    /// Whether the issuer's keys and metadata were fetched again. If not, the former ones remain in use.
    pub(crate) keys_fetched: bool,
}

/// A response with an error status.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ErrorResponse {
    pub(crate) error: ErrorDetails,
}

/// An error.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ErrorDetails {
    /// The stable reason code.
    pub(crate) code: String,
    pub(crate) message: String,
}
