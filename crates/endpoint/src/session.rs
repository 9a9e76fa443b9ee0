//! The sessions of one endpoint: their owners, and the header that carries their identifiers.

mod backend_guard;

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_mcp::header;
use portcullis_metadata::Scopes;
use portcullis_session::{Identifier, InUse, Owner, ResolveError, Session, SessionStore, SessionTarget};
use portcullis_verifier::Principal;

pub use self::backend_guard::BackendSessionGuard;

/// The sessions of one endpoint: a store, a target and a header.
pub(crate) struct Sessions {
    pub(crate) store: SessionStore,
    pub(crate) target: SessionTarget,
    pub(crate) mode: SessionMode,
    pub(crate) header: HeaderName,
    pub(crate) ended_status: EndedSessionStatus,
}

/// Whether a resource has sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMode {
    /// Messages of legacy revisions need a session, which `initialize` opens.
    #[default]
    On,
    /// No message needs a session, and no identifier is issued, for inner services without sessions. Session headers are
    /// removed in both directions. GET and DELETE are answered with 405.
    Off,
}

/// The status of the response to the owner of an ended session.
///
/// It applies only to identifiers that this deployment issued to this owner. Other identifiers are always unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedSessionStatus {
    /// 400, as for an unknown identifier.
    #[default]
    BadRequest,
    /// 404, as MCP 2025-06-18 and 2025-11-25 require. The client then starts a new session.
    NotFound,
}

/// The reason why a request has no usable session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionError {
    /// The session header is missing.
    Missing,
    /// The session header is repeated.
    Repeated,
    /// The caller's token has no subject, so the caller cannot own a session.
    NoOwner,
    /// The identifier is not that of an active session of the caller. The response does not say why.
    NotResolved(ResolveError),
    /// The caller's session has ended, and the response says so.
    Ended,
}

impl SessionError {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Missing => "session.missing",
            Self::Repeated => "session.repeated",
            Self::NoOwner => "session.no_owner",
            Self::NotResolved(error) => error.code(),
            Self::Ended => ResolveError::Ended.code(),
        }
    }
}

/// Returns the owner of this principal's sessions. Without a principal (authentication is off), the owner is anonymous.
///
/// Returns `None` for a token without a subject, unless its issuer's settings let clients own sessions.
pub(crate) fn owner(principal: Option<&Principal>) -> Option<Owner<'_>> {
    let Some(principal) = principal else { return Some(Owner::Anonymous) };
    let issuer = principal.issuer().as_str();
    match principal.subject() {
        Some(subject) => Some(Owner::Subject { issuer, subject, client: principal.client() }),
        None if principal.may_own_sessions_as_client() => {
            principal.client().map(|client| Owner::Client { issuer, client })
        }
        None => None,
    }
}

/// Returns the principal's scopes; none without a principal.
pub(crate) fn scopes(principal: Option<&Principal>) -> &Scopes {
    static NONE: Scopes = Scopes::empty();
    principal.map_or(&NONE, Principal::scopes)
}

impl Sessions {
    /// Takes the owner's session that the request names into use. `scopes` are those of the caller's token.
    pub(crate) fn resolve(
        &self,
        headers: &HeaderMap,
        owner: Option<Owner<'_>>,
        scopes: &Scopes,
    ) -> Result<InUse, SessionError> {
        let identifier = match header::single(headers, &self.header) {
            Ok(identifier) => identifier.ok_or(SessionError::Missing)?,
            Err(header::RepeatedHeader) => return Err(SessionError::Repeated),
        };
        let owner = owner.ok_or(SessionError::NoOwner)?;
        let reveals_ended = self.ended_status == EndedSessionStatus::NotFound;
        self.store.resolve(&self.target, owner, scopes, identifier.as_bytes()).map_err(|error| match error {
            ResolveError::Ended if reveals_ended => SessionError::Ended,
            error => SessionError::NotResolved(error),
        })
    }

    /// Removes every session header and returns the first value.
    pub(crate) fn take_header(&self, headers: &mut HeaderMap) -> Option<HeaderValue> {
        self.remove_default_header(headers);
        headers.remove(&self.header)
    }

    /// Replaces the client's identifier by the backend's, if the backend issued one. Returns the client's.
    pub(crate) fn set_backend_identifier(&self, session: &Session, headers: &mut HeaderMap) -> Option<HeaderValue> {
        let client_identifier = self.take_header(headers);
        if !session.backend_id().is_empty() {
            self.set_identifier(session.backend_id(), headers);
        }
        client_identifier
    }

    /// Sets the client's identifier.
    pub(crate) fn set_client_identifier(&self, identifier: &Identifier, headers: &mut HeaderMap) {
        self.set_identifier(identifier.as_bytes(), headers);
    }

    /// Removes `Mcp-Session-Id` if the endpoint uses another header. The other side could still read it.
    fn remove_default_header(&self, headers: &mut HeaderMap) {
        if self.header != header::SESSION {
            headers.remove(header::SESSION);
        }
    }

    fn set_identifier(&self, identifier: &[u8], headers: &mut HeaderMap) {
        // Identifiers have only bytes that a header can contain.
        if let Ok(value) = HeaderValue::from_bytes(identifier) {
            self.set_header(value, headers);
        }
    }

    /// Sets the session header.
    pub(crate) fn set_header(&self, mut identifier: HeaderValue, headers: &mut HeaderMap) {
        identifier.set_sensitive(true);
        headers.insert(&self.header, identifier);
    }
}
