use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use url::Url;

use super::{
    BridgeTransport,
    hub::{Hub, Request},
    listen,
    message::Message,
    renewal::renew,
    session::Session,
    sse::{self, Link},
    stream,
    wire::{Refusal, Refused},
};
use crate::McpError;

/// A request of the revisions with sessions, until it is answered. A session that the server has forgotten is opened
/// once more, and the request sent again, once.
pub(super) async fn ask(hub: &Arc<Hub>, request: &Request) -> Result<(), McpError> {
    let mut renewed = false;
    loop {
        let session = hub.sessions.current();
        let lost = match send(hub, request, session.as_ref()).await? {
            Sent::Answered => return Ok(()),
            Sent::Refused(refusal) => refusal,
            Sent::Lost(refusal) if renewed => refusal,
            Sent::Lost(refusal) => {
                if let Some(session) = &session {
                    renew(hub, session, request.refused).await?;
                    renewed = true;
                    continue;
                }
                refusal
            }
        };
        return answer_refusal(hub, request, lost).await;
    }
}

/// The handshake: by Streamable HTTP, or by HTTP with SSE where the server refuses it as those of 2024-11-05 do.
pub(super) async fn initialize(hub: &Arc<Hub>, request: &Request) -> Result<(), McpError> {
    if hub.settings.transport == BridgeTransport::HttpSse {
        let link = sse::connect(hub, request.refused).await?;
        return by_link(hub, request, link).await;
    }
    let response = hub.wire.send(post(hub, hub.wire.url(), request, HeaderMap::new()), request.refused).await?;
    if response.status.is_success() {
        hub.pending.opens(&request.id, hub.sessions.identifier(&response.headers), None);
        // There is no session yet in which a stream could be resumed.
        return stream::follow(hub, request, response, None).await;
    }
    let refusal = Refusal::read(&hub.wire, response).await;
    if hub.settings.transport == BridgeTransport::Any && refusal.is_of_sse_server() {
        match sse::connect(hub, request.refused).await {
            Ok(link) => return by_link(hub, request, link).await,
            Err(McpError::NoSseEndpoint) => {}
            Err(error) => return Err(error),
        }
    }
    answer_refusal(hub, request, Some(refusal)).await
}

async fn by_link(hub: &Arc<Hub>, request: &Request, link: Arc<Link>) -> Result<(), McpError> {
    hub.pending.opens(&request.id, None, Some(link.clone()));
    match send_by_link(hub, request, &link).await? {
        Sent::Answered => Ok(()),
        Sent::Lost(refusal) | Sent::Refused(refusal) => answer_refusal(hub, request, refusal).await,
    }
}

/// A request in the session as it is. Nothing is opened for it.
pub(super) async fn ask_once(hub: &Arc<Hub>, request: &Request) -> Result<(), McpError> {
    match send(hub, request, hub.sessions.current().as_ref()).await? {
        Sent::Answered => Ok(()),
        Sent::Lost(refusal) | Sent::Refused(refusal) => Err(refusal.map_or(McpError::SessionLost, Refusal::into_error)),
    }
}

/// Sends a message that has no answer. Where the session is lost, another one is opened; `again` says whether the message
/// means something there.
pub(super) async fn notify(hub: &Arc<Hub>, text: Bytes, again: bool) -> Result<(), McpError> {
    let session = hub.sessions.current();
    let refusal = match &session {
        Some(Session { link: Some(link), .. }) if link.is_lost() => None,
        _ => match deliver(hub, session.as_ref(), text.clone(), Refused::Renew).await? {
            None => return Ok(()),
            refusal => refusal,
        },
    };
    let Some(lost) = session.filter(|lost| refusal.as_ref().is_none_or(|refusal| lost.is_refused_by(refusal))) else {
        return Err(refusal.map_or(McpError::SessionLost, Refusal::into_error));
    };
    renew(hub, &lost, Refused::Renew).await?;
    match hub.sessions.current().filter(|_| again) {
        Some(session) => tell(hub, &session, text, Refused::Renew).await,
        None => Ok(()),
    }
}

/// Sends a message that has no answer, in this session.
pub(super) async fn tell(hub: &Arc<Hub>, session: &Session, text: Bytes, refused: Refused) -> Result<(), McpError> {
    let refusal = deliver(hub, Some(session), text, refused).await?;
    refusal.map_or(Ok(()), |refusal| Err(refusal.into_error()))
}

/// The same; gives what it is refused with.
async fn deliver(
    hub: &Arc<Hub>,
    session: Option<&Session>,
    text: Bytes,
    refused: Refused,
) -> Result<Option<Refusal>, McpError> {
    let link = session.and_then(|session| session.link.as_ref());
    let url = link.map_or_else(|| hub.wire.url(), |link| link.endpoint());
    let response = hub.wire.send(hub.wire.post(url, text, hub.sessions.headers(session)), refused).await?;
    hub.sessions.learn(session, &response.headers);
    if response.status.is_success() {
        return Ok(None);
    }
    Ok(Some(Refusal::read(&hub.wire, response).await))
}

/// What became of a request that was sent.
enum Sent {
    Answered,
    /// The server does not know the session (any more); it has done nothing.
    Lost(Option<Refusal>),
    Refused(Option<Refusal>),
}

async fn send(hub: &Arc<Hub>, request: &Request, session: Option<&Session>) -> Result<Sent, McpError> {
    if let Some(link) = session.and_then(|session| session.link.as_ref()) {
        return send_by_link(hub, request, link).await;
    }
    let headers = hub.sessions.headers(session);
    let response = hub.wire.send(post(hub, hub.wire.url(), request, headers), request.refused).await?;
    hub.sessions.learn(session, &response.headers);
    if response.status.is_success() {
        listen::ensure(hub);
        stream::follow(hub, request, response, session).await?;
        return Ok(Sent::Answered);
    }
    let refusal = Refusal::read(&hub.wire, response).await;
    Ok(if session.is_some_and(|session| session.is_refused_by(&refusal)) {
        Sent::Lost(Some(refusal))
    } else {
        Sent::Refused(Some(refusal))
    })
}

/// Sends to a server of 2024-11-05, whose answer comes on the stream that is open.
async fn send_by_link(hub: &Arc<Hub>, request: &Request, link: &Link) -> Result<Sent, McpError> {
    if link.is_lost() {
        return Ok(Sent::Lost(None));
    }
    let response = hub.wire.send(post(hub, link.endpoint(), request, HeaderMap::new()), request.refused).await?;
    if !response.status.is_success() {
        let refusal = Refusal::read(&hub.wire, response).await;
        return Ok(if refusal.is_of_session() { Sent::Lost(Some(refusal)) } else { Sent::Refused(Some(refusal)) });
    }
    drop(response);
    let mut over = request.over.clone();
    tokio::select! {
        // The sender goes with the request: this never brings a change, only the end.
        _ = over.changed() => Ok(Sent::Answered),
        () = link.lost() => Err(McpError::StreamEnded),
    }
}

fn post(hub: &Hub, url: &Url, request: &Request, headers: HeaderMap) -> portcullis_discovery::FetchRequest {
    hub.wire.post(url, request.message.text.clone(), headers)
}

/// Passes on what the server says, or says what it is when it says nothing that the client understands.
pub(super) async fn answer_refusal(
    hub: &Arc<Hub>,
    request: &Request,
    refusal: Option<Refusal>,
) -> Result<(), McpError> {
    let Some(refusal) = refusal else { return Err(McpError::SessionLost) };
    let Some(error) = &refusal.error else { return Err(refusal.into_error()) };
    let text = super::message::with_id(&request.id, &error.raw);
    match Message::parse(text) {
        Ok(answer) => hub.pass(answer.text, Some(request)).await.map(|_| ()),
        Err(_) => Err(McpError::InvalidResponse),
    }
}
