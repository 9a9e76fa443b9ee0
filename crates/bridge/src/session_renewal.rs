use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    context::Context,
    endpoint::TokenRenewal,
    state::{pending_requests::Purpose, session::Session, subscriptions::SubscriptionChange},
    transport::legacy,
};
use portcullis_mcp_client::McpError;

/// How many subscriptions are restored at once.
const MAX_CONCURRENT: usize = 16;
/// The time limit for restoring all subscriptions.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);

/// The beginning of warnings that something was not restored.
const INCOMPLETE: &str = "the new session lacks subscriptions or the log level of the lost one";

/// The notification that ends a handshake.
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Opens a session in place of a lost one, unless another task has done so, and restores the
/// client's subscriptions and log level. The client's messages wait meanwhile. It continues when
/// the caller is cancelled, so that no session stays half open. Fails with
/// [`McpError::SessionLost`] if the bridge ends, the client has made no handshake, or the server
/// rejects it; otherwise when a request fails. Failures to restore are only logged.
pub(crate) async fn renew(
    context: &Arc<Context>,
    lost: &Session,
    token_renewal: TokenRenewal,
) -> Result<(), McpError> {
    let context = Arc::clone(context);
    let lost = lost.clone();
    let renewal = tokio::spawn(async move {
        tokio::select! {
            () = context.sessions.ended() => Err(McpError::SessionLost),
            result = open(&context, &lost, token_renewal) => result,
        }
    });
    renewal.await.unwrap_or(Err(McpError::SessionLost))
}

async fn open(
    context: &Arc<Context>,
    lost: &Session,
    token_renewal: TokenRenewal,
) -> Result<(), McpError> {
    let _one_at_a_time = context.sessions.renewing.lock().await;
    if context
        .sessions
        .current()
        .is_some_and(|now| now.generation != lost.generation)
    {
        return Ok(());
    }
    let Some(params) = context.sessions.handshake() else {
        return Err(McpError::SessionLost);
    };
    tracing::info!("the session is lost; opening another one");
    let _others_wait = context.handshake.close();
    let purpose = Purpose::Initialize {
        identifier: None,
        connection: None,
    };
    let (request, answer) =
        context.own_request("initialize", Some(&params), purpose, token_renewal);
    {
        let _pending = context.pending.removed_on_drop(&request.id);
        legacy::initialize(context, &request).await?;
    }
    let accepted = answer.await.is_ok_and(|answer| answer.result().is_some());
    let Some(session) = context
        .sessions
        .current()
        .filter(|now| accepted && now.generation != lost.generation)
    else {
        return Err(McpError::SessionLost);
    };
    if session.version() != lost.version() {
        tracing::warn!("the server agreed on another revision of the protocol than before");
    }
    legacy::notify(
        context,
        &session,
        Bytes::from_static(INITIALIZED),
        token_renewal,
    )
    .await?;
    context.start_server_stream();
    restore(context, token_renewal).await;
    Ok(())
}

/// Restores the client's subscriptions and log level in the new session. Failures are logged,
/// because the client cannot be informed.
async fn restore(context: &Arc<Context>, token_renewal: TokenRenewal) {
    let end = Instant::now() + RESTORE_TIMEOUT;
    let mut requests = JoinSet::new();
    let mut skipped = 0;
    for change in context.subscriptions.all() {
        if requests.len() >= MAX_CONCURRENT {
            requests.join_next().await;
        }
        if Instant::now() >= end {
            skipped += 1;
            continue;
        }
        let context = Arc::clone(context);
        requests.spawn(async move { restore_one(&context, change, token_renewal, end).await });
    }
    while requests.join_next().await.is_some() {}
    if skipped > 0 {
        tracing::warn!(
            subscriptions = skipped,
            "{INCOMPLETE}: the time limit was reached"
        );
    }
}

/// Repeats a change in the new session. A change that the server rejects is forgotten.
async fn restore_one(
    context: &Arc<Context>,
    change: SubscriptionChange,
    token_renewal: TokenRenewal,
    end: Instant,
) {
    let (request, answer) = context.own_request(
        change.method(),
        Some(&change.params()),
        Purpose::Plain,
        token_renewal,
    );
    let asked = async {
        legacy::send_request_once(context, &request).await?;
        answer.await.map_err(|_| McpError::StreamEnded)
    };
    let result = {
        let _pending = context.pending.removed_on_drop(&request.id);
        timeout_at(end, asked).await
    };
    let method = change.method();
    match result {
        Ok(Ok(answer)) if answer.result().is_some() => {}
        Ok(Ok(_)) => {
            context.subscriptions.forget(&change);
            tracing::warn!(
                method,
                reason = "mcp.rpc",
                "{INCOMPLETE}: the server rejects the request"
            );
        }
        Ok(Err(error)) => {
            tracing::warn!(
                method,
                reason = error.code(),
                "{INCOMPLETE}: {}",
                context.settings.describe(&error)
            );
        }
        Err(_) => tracing::warn!(
            method,
            reason = "fetch.timeout",
            "{INCOMPLETE}: the server does not respond"
        ),
    }
}
