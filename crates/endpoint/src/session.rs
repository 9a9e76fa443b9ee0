mod backend_guard;
mod error;
mod mode;
mod owner;

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_mcp::header;
use portcullis_metadata::Scopes;
use portcullis_session::{
    EndRecord, Identifier, InUse, Owner, ResolveError, Session, SessionStore, SessionTarget,
};

pub use self::{
    backend_guard::BackendSessionGuard,
    mode::{EndedSessionStatus, SessionMode},
};
pub(crate) use self::{
    error::SessionError,
    owner::{owner, scopes},
};

/// The sessions of one endpoint: a store, a target and a header.
pub(crate) struct Sessions {
    pub(crate) store: SessionStore,
    pub(crate) target: SessionTarget,
    pub(crate) mode: SessionMode,
    pub(crate) header: HeaderName,
    pub(crate) ended_status: EndedSessionStatus,
}

impl Sessions {
    /// Takes the owner's session that the request names into use. `scopes` are those of the
    /// caller's token. Fails if the header is missing or repeated, the caller cannot own sessions,
    /// or the identifier is not that of an active session of the caller at this resource and
    /// upstream.
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
        self.store
            .resolve(&self.target, owner, scopes, identifier.as_bytes())
            .map_err(|error| match error {
                ResolveError::Ended if self.reveals_end(owner, identifier.as_bytes()) => {
                    SessionError::Ended
                }
                error => SessionError::NotResolved(error),
            })
    }

    /// Returns whether the owner of an ended session learns that it has ended.
    fn reveals_end(&self, owner: Owner<'_>, identifier: &[u8]) -> bool {
        match self.ended_status {
            EndedSessionStatus::Auto => {
                !self
                    .store
                    .is_ended_by_owner(&self.target, owner, identifier)
            }
            EndedSessionStatus::BadRequest => false,
            EndedSessionStatus::NotFound => true,
        }
    }

    /// Records the end of the owner's session that the request names. `None` if it names no single
    /// one.
    pub(crate) fn record_known_end(
        &self,
        headers: &HeaderMap,
        owner: Owner<'_>,
    ) -> Option<EndRecord> {
        let identifier = header::single(headers, &self.header).ok().flatten()?;
        Some(
            self.store
                .record_known_end(&self.target, owner, identifier.as_bytes()),
        )
    }

    /// Removes every session header and returns the first value.
    pub(crate) fn take_header(&self, headers: &mut HeaderMap) -> Option<HeaderValue> {
        self.remove_default_header(headers);
        headers.remove(&self.header)
    }

    /// Replaces the client's identifier by the backend's, if the backend issued one. Returns the
    /// client's.
    pub(crate) fn set_backend_identifier(
        &self,
        session: &Session,
        headers: &mut HeaderMap,
    ) -> Option<HeaderValue> {
        if session.backend_id().is_empty() {
            self.take_header(headers)
        } else {
            self.set_identifier(session.backend_id(), headers)
        }
    }

    /// Returns whether the session header is the backend's identifier of a session.
    pub(crate) fn is_backend_identifier(&self, session: &Session, headers: &HeaderMap) -> bool {
        headers
            .get(&self.header)
            .is_some_and(|named| named.as_bytes() == session.backend_id())
    }

    /// Sets the client's identifier.
    pub(crate) fn set_client_identifier(&self, identifier: &Identifier, headers: &mut HeaderMap) {
        self.set_identifier(identifier.as_bytes(), headers);
    }

    /// Removes `Mcp-Session-Id` if the endpoint uses another header. The other side could still
    /// read it.
    fn remove_default_header(&self, headers: &mut HeaderMap) {
        if self.header != header::SESSION {
            headers.remove(header::SESSION);
        }
    }

    fn set_identifier(&self, identifier: &[u8], headers: &mut HeaderMap) -> Option<HeaderValue> {
        match HeaderValue::from_bytes(identifier) {
            Ok(value) => self.set_header(value, headers),
            // Identifiers have only bytes that a header can contain.
            Err(_) => self.take_header(headers),
        }
    }

    /// Replaces every session header by this one, and returns the first value.
    pub(crate) fn set_header(
        &self,
        mut identifier: HeaderValue,
        headers: &mut HeaderMap,
    ) -> Option<HeaderValue> {
        self.remove_default_header(headers);
        identifier.set_sensitive(true);
        headers.insert(&self.header, identifier)
    }
}
