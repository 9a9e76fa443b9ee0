//! Requests and notifications in a session, which is reopened if the server has lost it.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    context::{Context, Request},
    endpoint::TokenRenewal,
    error_response::ErrorResponse,
    session_renewal::renew,
    state::session::Session,
    transport::legacy::{self, SentRequest},
};
use portcullis_mcp_client::McpError;

/// What happens to a message that the server has rejected because it has lost the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterRenewal {
    /// It is sent again in the next session.
    SendAgain,
    /// It is dropped, because it is meaningless in another session.
    Drop,
}

/// Sends a request in the session and forwards the response. If the server has lost the session,
/// another one is opened and the request is sent again, once. Fails when the request cannot be sent
/// or has no valid response, and when no other session can be opened. An error response of the
/// server is forwarded, unless it has no JSON-RPC error.
pub(crate) async fn send_request(
    context: &Arc<Context>,
    request: &Request,
) -> Result<(), McpError> {
    let mut renewed = false;
    loop {
        let session = context.sessions.current();
        match legacy::send_request(context, request, session.as_ref()).await? {
            SentRequest::Answered => return Ok(()),
            SentRequest::Rejected(rejection) => {
                return context.forward_error(request, rejection).await;
            }
            SentRequest::SessionLost(rejection) => match (session, rejection) {
                (Some(lost), _) if !renewed => {
                    renew(context, &lost, request.token_renewal).await?;
                    renewed = true;
                }
                (_, Some(rejection)) => return context.forward_error(request, rejection).await,
                (_, None) => return Err(McpError::SessionLost),
            },
        }
    }
}

/// Sends a notification or a response. If the server has lost the session, another one is opened.
/// Fails when the message cannot be sent, when the server rejects it, and when no other session can
/// be opened.
pub(crate) async fn notify(
    context: &Arc<Context>,
    text: Bytes,
    after_renewal: AfterRenewal,
) -> Result<(), McpError> {
    let session = context.sessions.current();
    let rejection = match &session {
        Some(Session {
            connection: Some(connection),
            ..
        }) if connection.is_lost() => None,
        _ => match legacy::deliver(
            context,
            session.as_ref(),
            text.clone(),
            TokenRenewal::Allowed,
        )
        .await?
        {
            None => return Ok(()),
            rejection => rejection,
        },
    };
    let is_lost = |session: &Session| {
        rejection
            .as_ref()
            .is_none_or(|rejection| session.is_lost_by(rejection))
    };
    let Some(lost) = session.filter(is_lost) else {
        return Err(rejection.map_or(McpError::SessionLost, ErrorResponse::into_error));
    };
    renew(context, &lost, TokenRenewal::Allowed).await?;
    match (context.sessions.current(), after_renewal) {
        (Some(session), AfterRenewal::SendAgain) => {
            legacy::notify(context, &session, text, TokenRenewal::Allowed).await
        }
        (None, _) | (_, AfterRenewal::Drop) => Ok(()),
    }
}
