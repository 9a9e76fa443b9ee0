//! The checks that a request must pass before it reaches the inner service.

mod checked_headers;
mod negotiation;
mod session_use;

use std::time::Duration;

use http::{Method, request::Parts};
use portcullis_guard::Caller;
use portcullis_mcp::{
    Envelope, Era, EraError, MessageId, Revision, checks_name_header, legacy_version,
};
use portcullis_metadata::Scopes;
use portcullis_session::{EndRecord, Owner, Reservation, ResolveError, Session};
use tokio::time::Instant;

use self::{
    checked_headers::CheckedHeaders,
    negotiation::Opening,
    session_use::{Deletion, ExistingSession},
};
pub(crate) use self::{
    negotiation::{Negotiated, Negotiation},
    session_use::{Finished, SessionUse, record_session},
};
use crate::{
    message::{Message, UnsupportedContentType, check_content_type, operation},
    response::{Reason, Rejection},
    rules::Subject,
    session::{self, SessionError, SessionMode, Sessions},
    state::EndpointState,
    stream::StreamPurpose,
};

/// The request whose response is the stream on which a modern client listens.
const LISTEN: &str = "subscriptions/listen";

/// The maximum of [`EndpointSettings::head_timeout`](crate::EndpointSettings::head_timeout). No
/// deadline overflows with it.
const MAX_HEAD_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of all checks of an admitted request.
pub(crate) struct Admission {
    pub(crate) era: Era,
    pub(crate) session_use: SessionUse,
    pub(crate) checked_headers: CheckedHeaders,
    pub(crate) message_id: Option<MessageId>,
}

/// Checks a GET or DELETE. Both need a session, so they are served only where legacy revisions and
/// sessions are. Fails if the endpoint has no sessions, the request names no session of the caller,
/// its version is not served, or a rule rejects it.
pub(crate) fn admit_without_body(
    endpoint: &EndpointState,
    parts: &Parts,
    caller: &Caller,
) -> Result<Admission, Reason> {
    if !endpoint.has_sessions() {
        return Err(Reason::Method {
            has_sessions: false,
        });
    }
    let owner = session::owner(caller.principal());
    let scopes = session::scopes(caller.principal());
    let session = endpoint
        .sessions
        .resolve(&parts.headers, owner, scopes)
        .map_err(Reason::StreamSession)?;
    let version =
        legacy_version(&parts.headers, endpoint.revisions).map_err(Reason::StreamVersion)?;
    endpoint
        .rules
        .authorize(&Subject::default(), caller)
        .map_err(Reason::Rule)?;
    let era = Era::Legacy {
        version: version.or_else(|| negotiated_revision(&session)),
    };
    let session_use = match parts.method {
        Method::DELETE => SessionUse::Delete(Deletion::new(&endpoint.sessions.store, session)),
        _ => SessionUse::Existing(ExistingSession::new(
            session,
            StreamPurpose::Listen { id: None },
        )),
    };
    Ok(Admission {
        era,
        session_use,
        checked_headers: CheckedHeaders::None,
        message_id: None,
    })
}

/// Returns the record of the end that the client of a rejected DELETE must wait for: it takes the
/// rejection for the confirmation that its session has ended everywhere. `None` if the request was
/// rejected for another reason.
pub(crate) fn unconfirmed_end(
    endpoint: &EndpointState,
    parts: &Parts,
    caller: &Caller,
    reason: &Reason,
) -> Option<EndRecord> {
    let is_ended = matches!(
        reason,
        Reason::StreamSession(SessionError::Ended | SessionError::NotResolved(ResolveError::Ended))
    );
    if parts.method != Method::DELETE || !is_ended {
        return None;
    }
    endpoint
        .sessions
        .record_known_end(&parts.headers, session::owner(caller.principal())?)
}

/// Checks a POST whose body is complete. Fails with the first reason, and with the id of the
/// message for the JSON-RPC error, if it can be read.
pub(crate) fn admit_post(
    endpoint: &EndpointState,
    parts: &Parts,
    caller: &Caller,
    body: &[u8],
) -> Result<Admission, Rejection> {
    let message = Message::parse(body, &parts.headers, endpoint.limits, endpoint.revisions);
    if let Some(operation) = message.envelope.as_ref().ok().and_then(operation) {
        caller.record().set_operation(operation);
    }
    let admission = if message.is_legacy() {
        admit_legacy(endpoint, parts, caller, &message)
    } else {
        admit_modern(endpoint, parts, caller, &message)
    };
    let envelope = message.envelope.as_ref();
    match admission {
        Ok(admission) => Ok(Admission {
            message_id: envelope.ok().and_then(Envelope::message_id),
            ..admission
        }),
        Err(reason) => {
            let id = envelope.map_or_else(|_| Envelope::refused_id(body), Envelope::id);
            Err(Rejection {
                reason,
                id: id.map(ToOwned::to_owned),
            })
        }
    }
}

/// Checks a message of a modern revision, which has no session.
fn admit_modern(
    endpoint: &EndpointState,
    parts: &Parts,
    caller: &Caller,
    message: &Message<'_>,
) -> Result<Admission, Reason> {
    check_content_type(&parts.headers)?;
    let with_supported = |error: EraError| {
        error.map_supported(|served| endpoint.upstream_revisions.supported(served))
    };
    let era = message
        .era
        .clone()
        .map_err(|error| Reason::Era(with_supported(error)))?;
    let envelope = message
        .envelope
        .as_ref()
        .map_err(|error| Reason::Message(*error))?;
    authorize(endpoint, caller, envelope)?;
    let is_discover = envelope.method() == Some("server/discover");
    let checked_headers = if checks_name_header(envelope) {
        CheckedHeaders::MethodAndName
    } else {
        CheckedHeaders::Method
    };
    let purpose = match envelope.id() {
        Some(id) if envelope.method() == Some(LISTEN) => StreamPurpose::Listen {
            id: Some(id.to_owned()),
        },
        _ => StreamPurpose::Answer,
    };
    Ok(Admission {
        era,
        session_use: SessionUse::None {
            is_discover,
            purpose,
        },
        checked_headers,
        message_id: None,
    })
}

/// Checks a message of a legacy revision. The session is checked first: without a usable session
/// the response does not depend on the message.
fn admit_legacy(
    endpoint: &EndpointState,
    parts: &Parts,
    caller: &Caller,
    message: &Message<'_>,
) -> Result<Admission, Reason> {
    let owner = session::owner(caller.principal());
    let scopes = session::scopes(caller.principal());
    let sessions = &endpoint.sessions;
    let has_sessions = sessions.mode == SessionMode::On;
    let opens_session = message.is_initialize() && !parts.headers.contains_key(&sessions.header);
    let session = if opens_session || !has_sessions {
        None
    } else {
        Some(
            sessions
                .resolve(&parts.headers, owner, scopes)
                .map_err(Reason::Session)?,
        )
    };
    check_content_type(&parts.headers)?;
    let envelope = message
        .envelope
        .as_ref()
        .map_err(|error| Reason::Message(*error))?;
    let era = message.era.clone().map_err(Reason::Era)?;
    authorize(endpoint, caller, envelope)?;
    let (session_use, session_revision) = match session {
        Some(session) => {
            let is_named = matches!(era, Era::Legacy { version: Some(_) });
            let revision = if is_named {
                None
            } else {
                negotiated_revision(&session)
            };
            (
                SessionUse::Existing(ExistingSession::new(session, StreamPurpose::Answer)),
                revision,
            )
        }
        None if !message.is_initialize() => (SessionUse::Stateless, None),
        None => {
            let reservation = if has_sessions {
                Some(reserve(sessions, owner, scopes)?)
            } else {
                None
            };
            let requested_version = envelope.initialize_version();
            let opening = Opening {
                reservation,
                requested_version: requested_version.map(Into::into),
                id: envelope.id().map(ToOwned::to_owned),
                deadline: Instant::now() + endpoint.head_timeout.min(MAX_HEAD_TIMEOUT),
            };
            (
                SessionUse::Open(opening),
                requested_version.and_then(Revision::parse),
            )
        }
    };
    let era = match era {
        Era::Legacy { version } => Era::Legacy {
            version: version.or(session_revision),
        },
        era => era,
    };
    Ok(Admission {
        era,
        session_use,
        checked_headers: CheckedHeaders::None,
        message_id: None,
    })
}

/// Reserves a session for the caller.
fn reserve(
    sessions: &Sessions,
    owner: Option<Owner<'_>>,
    scopes: &Scopes,
) -> Result<Reservation, Reason> {
    let owner = owner.ok_or(Reason::NoOwner)?;
    sessions
        .store
        .reserve(&sessions.target, owner, scopes)
        .map_err(Reason::SessionLimit)
}

/// Checks a message against all rules that match it.
fn authorize(
    endpoint: &EndpointState,
    caller: &Caller,
    envelope: &Envelope<'_>,
) -> Result<(), Reason> {
    let subject = endpoint.rules.subject(envelope).map_err(Reason::Uri)?;
    endpoint
        .rules
        .authorize(&subject, caller)
        .map_err(Reason::Rule)
}

/// Returns the revision that the session negotiated, if it is known.
fn negotiated_revision(session: &Session) -> Option<Revision> {
    session.protocol_version().and_then(Revision::parse)
}

impl From<UnsupportedContentType> for Reason {
    fn from(UnsupportedContentType: UnsupportedContentType) -> Self {
        Self::ContentType
    }
}
