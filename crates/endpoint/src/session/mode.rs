//! Settings of the sessions of a resource: whether it has any, and what the owner of an ended one
//! gets.

/// Whether a resource has sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMode {
    /// Messages of legacy revisions need a session, which `initialize` opens.
    #[default]
    On,
    /// No message needs a session, and no identifier is issued, for inner services without
    /// sessions. Session headers are removed in both directions. GET and DELETE are answered with
    /// 405.
    Off,
}

/// The status of the response to the owner of an ended session.
///
/// It applies only to identifiers that this deployment issued to this owner. Other identifiers are
/// always unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedSessionStatus {
    /// 400 if the owner ended the session by DELETE, as for an unknown identifier. 404 if the
    /// server ended it, also when it no longer remembers that the owner did
    /// ([`SessionStore::is_ended_by_owner`](portcullis_session::SessionStore::is_ended_by_owner)).
    #[default]
    Auto,
    /// 400, as for an unknown identifier.
    BadRequest,
    /// 404, as MCP 2025-06-18 and 2025-11-25 require. The client then starts a new session.
    NotFound,
}
