//! Which requests may go on.

use http::{HeaderMap, Method, request::Parts};
use portcullis_guard::Caller;
use portcullis_mcp::{Envelope, Era, EraError, Revision, checks_name_header, header, legacy_version};
use portcullis_session::Session;

use crate::{
    exchange::{Closing, Exchange},
    layer::Shared,
    message::{Message, check_content_type},
    negotiated::Opening,
    operation::operation,
    respond::{Refusal, Refused},
    session,
    subject::Subject,
};

/// A request that may go on, and how.
pub(crate) struct Admission {
    pub(crate) era: Era,
    pub(crate) exchange: Exchange,
    pub(crate) mirrored: Mirrored,
}

/// Which of the headers `Mcp-Method` and `Mcp-Name` agree with the body. The others are not forwarded, because an upstream
/// could act on them instead of the body.
#[derive(Clone, Copy)]
pub(crate) enum Mirrored {
    Neither,
    Method,
    MethodAndName,
}

impl Mirrored {
    pub(crate) fn remove_unchecked(self, headers: &mut HeaderMap) {
        if matches!(self, Self::Neither) {
            headers.remove(header::METHOD);
        }
        if !matches!(self, Self::MethodAndName) {
            headers.remove(header::NAME);
        }
    }
}

/// Judges a GET or DELETE: both need a session, so there are none where only modern revisions are served.
pub(crate) fn judge_stream(shared: &Shared, parts: &Parts, caller: &Caller) -> Result<Admission, Refusal> {
    if !shared.revisions.has_legacy() {
        return Err(Refusal::Method { post_only: true });
    }
    let (owner, scopes) = (session::owner(caller.principal()), session::scopes(caller.principal()));
    let session = shared.sessions.resolve(&parts.headers, owner, scopes).map_err(Refusal::NoStream)?;
    let version = legacy_version(&parts.headers, shared.revisions).map_err(Refusal::StreamVersion)?;
    shared.rules.judge(&Subject::default(), caller).map_err(Refusal::NotAllowed)?;
    let era = Era::Legacy { version: version.or_else(|| negotiated(&session)) };
    let exchange = match parts.method {
        Method::DELETE => Exchange::Closing(Closing::new(&shared.sessions.store, session)),
        _ => Exchange::In(session),
    };
    Ok(Admission { era, exchange, mirrored: Mirrored::Neither })
}

/// Judges a POST whose body is complete.
pub(crate) fn judge_post(shared: &Shared, parts: &Parts, caller: &Caller, body: &[u8]) -> Result<Admission, Refused> {
    let message = Message::read(body, &parts.headers, shared.limits, shared.revisions);
    if let Some(operation) = message.envelope.as_ref().ok().and_then(operation) {
        caller.record_operation(operation);
    }
    let admission = if message.is_legacy() {
        judge_legacy(shared, parts, caller, &message)
    } else {
        judge_modern(shared, parts, caller, &message)
    };
    admission.map_err(|refusal| {
        let id = message.envelope.as_ref().map_or_else(|_| Envelope::refused_id(body), Envelope::id);
        Refused { refusal, id: id.map(ToOwned::to_owned) }
    })
}

fn judge_modern(shared: &Shared, parts: &Parts, caller: &Caller, message: &Message<'_>) -> Result<Admission, Refusal> {
    check_content_type(&parts.headers)?;
    let narrow = |error: EraError| error.map_supported(|supported| shared.upstream_revisions.among(supported));
    let era = message.era.clone().map_err(|error| Refusal::Era(narrow(error)))?;
    let envelope = message.envelope.as_ref().map_err(|error| Refusal::Message(*error))?;
    check_rules(shared, caller, envelope)?;
    let discovers = envelope.method() == Some("server/discover");
    let mirrored = if checks_name_header(envelope) { Mirrored::MethodAndName } else { Mirrored::Method };
    Ok(Admission { era, exchange: Exchange::Without { discovers }, mirrored })
}

/// The session comes first: without a usable one the answer is the same whatever the message is.
fn judge_legacy(shared: &Shared, parts: &Parts, caller: &Caller, message: &Message<'_>) -> Result<Admission, Refusal> {
    let (owner, scopes) = (session::owner(caller.principal()), session::scopes(caller.principal()));
    let opens = message.is_initialize() && !parts.headers.contains_key(&shared.sessions.header);
    let session = if opens {
        None
    } else {
        Some(shared.sessions.resolve(&parts.headers, owner, scopes).map_err(Refusal::NoSession)?)
    };
    check_content_type(&parts.headers)?;
    let envelope = message.envelope.as_ref().map_err(|error| Refusal::Message(*error))?;
    let era = message.era.clone().map_err(Refusal::Era)?;
    check_rules(shared, caller, envelope)?;
    let asked = envelope.initialize_version().and_then(Revision::parse);
    let exchange = match session {
        Some(session) => Exchange::In(session),
        None => {
            let owner = owner.ok_or(Refusal::NoOwner)?;
            let sessions = &shared.sessions;
            let room = sessions.store.reserve(&sessions.resource, owner, scopes).map_err(Refusal::SessionLimit)?;
            let requested = envelope.initialize_version().map(Into::into);
            Exchange::Opening(Opening { room, requested, id: envelope.id().map(ToOwned::to_owned) })
        }
    };
    let known = match &exchange {
        Exchange::In(session) => negotiated(session),
        _ => asked,
    };
    let era = match era {
        Era::Legacy { version } => Era::Legacy { version: version.or(known) },
        era => era,
    };
    Ok(Admission { era, exchange, mirrored: Mirrored::Neither })
}

/// Checks a message against all rules that it is subject to.
fn check_rules(shared: &Shared, caller: &Caller, envelope: &Envelope<'_>) -> Result<(), Refusal> {
    let subject = shared.rules.subject(envelope).map_err(Refusal::Uri)?;
    shared.rules.judge(&subject, caller).map_err(Refusal::NotAllowed)
}

/// What the session follows where the request itself does not say.
fn negotiated(session: &Session) -> Option<Revision> {
    session.protocol_version().and_then(Revision::parse)
}
