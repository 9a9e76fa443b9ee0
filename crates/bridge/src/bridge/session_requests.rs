//! Requests and notifications in a session, which is reopened if the server has lost it.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    bridge::{
        context::{Context, Request},
        endpoint::{ErrorResponse, TokenRenewal},
        session_renewal::renew,
        state::session::Session,
        transport::legacy::{self, Sent},
    },
    error::McpError,
};

/// Sends a request in the session and forwards the response. If the server has lost the session, another one is opened
/// and the request is sent again, once.
pub(crate) async fn ask(context: &Arc<Context>, request: &Request) -> Result<(), McpError> {
    let mut renewed = false;
    loop {
        let session = context.sessions.current();
        let lost = match legacy::send(context, request, session.as_ref()).await? {
            Sent::Answered => return Ok(()),
            Sent::Refused(refusal) => refusal,
            Sent::Lost(refusal) if renewed => refusal,
            Sent::Lost(refusal) => {
                if let Some(session) = &session {
                    renew(context, session, request.token_renewal).await?;
                    renewed = true;
                    continue;
                }
                refusal
            }
        };
        return context.forward_error(request, lost).await;
    }
}

/// Sends a notification or a response. If the server has lost the session, another one is opened; `again` says whether
/// the message must be sent there.
pub(crate) async fn notify(context: &Arc<Context>, text: Bytes, again: bool) -> Result<(), McpError> {
    let session = context.sessions.current();
    let refusal = match &session {
        Some(Session { connection: Some(connection), .. }) if connection.is_lost() => None,
        _ => match legacy::deliver(context, session.as_ref(), text.clone(), TokenRenewal::Allowed).await? {
            None => return Ok(()),
            refusal => refusal,
        },
    };
    let Some(lost) = session.filter(|lost| refusal.as_ref().is_none_or(|refusal| lost.is_refused_by(refusal))) else {
        return Err(refusal.map_or(McpError::SessionLost, ErrorResponse::into_error));
    };
    renew(context, &lost, TokenRenewal::Allowed).await?;
    match context.sessions.current().filter(|_| again) {
        Some(session) => legacy::tell(context, &session, text, TokenRenewal::Allowed).await,
        None => Ok(()),
    }
}
