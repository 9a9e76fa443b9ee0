use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_mcp::header;
use portcullis_metadata::{ResourceUri, Scopes};
use portcullis_session::{Identifier, InUse, Owner, ResolveError, Session, SessionStore};
use portcullis_verifier::Principal;

/// Sessions as the endpoint deals with them: one store, one resource, one header.
pub(crate) struct Sessions {
    pub(crate) store: SessionStore,
    pub(crate) resource: ResourceUri,
    pub(crate) header: HeaderName,
    pub(crate) ended_status: EndedSessionStatus,
}

/// What the owner of a session is answered that this deployment issued and that has ended.
///
/// Anybody else's identifiers, ended or not, are unknown ones under either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedSessionStatus {
    /// 400, as for an unknown identifier.
    #[default]
    BadRequest,
    /// 404, as MCP 2025-06-18 and 2025-11-25 demand, upon which clients start a new session.
    NotFound,
}

/// Why a request has no session that it may use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoSession {
    /// It names none.
    Missing,
    /// It names one more than once.
    Repeated,
    /// The caller's token has no subject, so that no session can be its own.
    NoOwner,
    /// It names none of the caller's.
    NotResolved(ResolveError),
    /// It names one that was the caller's and has ended, and the caller is to know that.
    Gone,
}

impl NoSession {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Missing => "session.missing",
            Self::Repeated => "session.repeated",
            Self::NoOwner => "session.no_owner",
            Self::NotResolved(reason) => reason.code(),
            Self::Gone => ResolveError::Ended.code(),
        }
    }
}

/// Whose sessions this principal's are. Without a principal authentication is off, and sessions are nobody's.
/// `None` for a token without subject whose issuer is not set to let clients own sessions.
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

/// What this principal is allowed to do, as far as its sessions mind.
pub(crate) fn scopes(principal: Option<&Principal>) -> &Scopes {
    static NONE: Scopes = Scopes::empty();
    principal.map_or(&NONE, Principal::scopes)
}

impl Sessions {
    /// Takes the session that the request names into use, if it is the owner's. `scopes` are what the caller's token allows.
    pub(crate) fn resolve(
        &self,
        headers: &HeaderMap,
        owner: Option<Owner<'_>>,
        scopes: &Scopes,
    ) -> Result<InUse, NoSession> {
        let identifier = match header::single(headers, &self.header) {
            Ok(identifier) => identifier.ok_or(NoSession::Missing)?,
            Err(header::RepeatedHeader) => return Err(NoSession::Repeated),
        };
        let owner = owner.ok_or(NoSession::NoOwner)?;
        let tells_ended = self.ended_status == EndedSessionStatus::NotFound;
        self.store.resolve(&self.resource, owner, scopes, identifier.as_bytes()).map_err(|reason| match reason {
            ResolveError::Ended if tells_ended => NoSession::Gone,
            reason => NoSession::NotResolved(reason),
        })
    }

    /// Takes every session header off and gives the first value.
    pub(crate) fn take(&self, headers: &mut HeaderMap) -> Option<HeaderValue> {
        self.drop_usual_name(headers);
        headers.remove(&self.header)
    }

    /// Puts the identifier that the backend knows the session by, where it gave one, in the place of the client's.
    pub(crate) fn name_to_backend(&self, session: &Session, headers: &mut HeaderMap) {
        if session.backend_id().is_empty() {
            self.take(headers);
        } else {
            self.drop_usual_name(headers);
            self.write(session.backend_id(), headers);
        }
    }

    /// Under its usual name an identifier could still reach whoever listens to that.
    fn drop_usual_name(&self, headers: &mut HeaderMap) {
        if self.header != header::SESSION {
            headers.remove(header::SESSION);
        }
    }

    /// Writes the identifier that the client knows the session by from now on.
    pub(crate) fn name_to_client(&self, identifier: &Identifier, headers: &mut HeaderMap) {
        self.write(identifier.as_bytes(), headers);
    }

    fn write(&self, identifier: &[u8], headers: &mut HeaderMap) {
        match HeaderValue::from_bytes(identifier) {
            Ok(mut value) => {
                value.set_sensitive(true);
                headers.insert(&self.header, value);
            }
            // No identifier holds such bytes; the other side's does not take its place.
            Err(_) => drop(headers.remove(&self.header)),
        }
    }
}
