use http::{Method, request::Parts};
use portcullis_guard::Caller;
use portcullis_mcp::{Envelope, Era, Revision, legacy_version};
use portcullis_session::Session;

use crate::{
    exchange::{Closing, Exchange},
    layer::Shared,
    message::{Message, check_content_type},
    operation::operation,
    respond::{Refusal, Refused},
    rules::Subject,
    session,
};

/// A request that may go on, and how.
pub(crate) struct Admission {
    pub(crate) era: Era,
    pub(crate) exchange: Exchange,
}

/// Judges a GET or DELETE: both need a session, so there are none where only modern revisions are served.
pub(crate) fn judge_stream(shared: &Shared, parts: &Parts, caller: &Caller) -> Result<Admission, Refusal> {
    if !shared.revisions.has_legacy() {
        return Err(Refusal::Method { post_only: true });
    }
    let (owner, scopes) = (session::owner(caller.principal()), session::scopes(caller.principal()));
    let session = shared.sessions.resolve(&parts.headers, owner, scopes).map_err(Refusal::NoStream)?;
    let version = legacy_version(&parts.headers, shared.revisions).map_err(Refusal::StreamVersion)?;
    shared.rules.judge(Subject::default(), caller).map_err(Refusal::NotAllowed)?;
    let era = Era::Legacy { version: version.or_else(|| negotiated(&session)) };
    let exchange = match parts.method {
        Method::DELETE => Exchange::Closing(Closing::new(&shared.sessions.store, session)),
        _ => Exchange::In(session),
    };
    Ok(Admission { era, exchange })
}

/// Judges a POST whose body is complete.
pub(crate) fn judge_post(shared: &Shared, parts: &Parts, caller: &Caller, body: &[u8]) -> Result<Admission, Refused> {
    let message = Message::read(body, &parts.headers, shared.limits, shared.revisions);
    if let Some(operation) = message.envelope.as_ref().ok().and_then(operation) {
        caller.report_operation(operation);
    }
    let admission = if message.is_legacy() {
        judge_legacy(shared, parts, caller, &message)
    } else {
        judge_modern(shared, parts, caller, &message)
    };
    admission.map_err(|refusal| {
        let id = message.envelope.as_ref().ok().and_then(Envelope::id).map(ToOwned::to_owned);
        Refused { refusal, id }
    })
}

fn judge_modern(shared: &Shared, parts: &Parts, caller: &Caller, message: &Message<'_>) -> Result<Admission, Refusal> {
    check_content_type(&parts.headers)?;
    let era = message.era.clone().map_err(Refusal::Era)?;
    let envelope = message.envelope.as_ref().map_err(|error| Refusal::Message(*error))?;
    shared.rules.judge(envelope.into(), caller).map_err(Refusal::NotAllowed)?;
    Ok(Admission { era, exchange: Exchange::Without })
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
    shared.rules.judge(envelope.into(), caller).map_err(Refusal::NotAllowed)?;
    let asked = envelope.initialize_version().and_then(Revision::parse);
    let exchange = match session {
        Some(session) => Exchange::In(session),
        None => {
            let owner = owner.ok_or(Refusal::NoOwner)?;
            let sessions = &shared.sessions;
            let room = sessions.store.reserve(&sessions.resource, owner, scopes).map_err(Refusal::StoreFull)?;
            let id = envelope.id().map(ToOwned::to_owned);
            Exchange::Opening { room, asked: asked.map(Revision::as_str), id }
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
    Ok(Admission { era, exchange })
}

/// What the session follows where the request itself does not say.
fn negotiated(session: &Session) -> Option<Revision> {
    session.protocol_version().and_then(Revision::parse)
}
