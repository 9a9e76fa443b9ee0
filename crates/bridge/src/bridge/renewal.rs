//! A session in the place of one that the server does not know any more.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{
    hub::{Hub, explanation},
    kept::Change,
    legacy, listen,
    pending::Purpose,
    session::Session,
    wire::Refused,
};
use crate::McpError;

/// How many things the new session is asked for at once, and how long it may take for all of them.
const AT_ONCE: usize = 16;
const ASKED_WITHIN: Duration = Duration::from_secs(10);

const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Opens a session in the place of a lost one, unless somebody has done so by now, and asks it for what the client had
/// asked the lost one to keep up. What the client sends meanwhile waits. It goes on when the caller gives up, so that no
/// session is left half open.
pub(super) async fn renew(hub: &Arc<Hub>, lost: &Session, refused: Refused) -> Result<(), McpError> {
    let (hub, lost) = (Arc::clone(hub), lost.clone());
    let renewal = tokio::spawn(async move {
        tokio::select! {
            () = hub.sessions.ended() => Err(McpError::SessionLost),
            outcome = open(&hub, &lost, refused) => outcome,
        }
    });
    renewal.await.unwrap_or(Err(McpError::SessionLost))
}

async fn open(hub: &Arc<Hub>, lost: &Session, refused: Refused) -> Result<(), McpError> {
    let _one_at_a_time = hub.sessions.renewing.lock().await;
    if hub.sessions.current().is_some_and(|now| now.generation != lost.generation) {
        return Ok(());
    }
    let Some(params) = hub.sessions.handshake() else { return Err(McpError::SessionLost) };
    tracing::info!("the session is gone; another one is opened");
    let _others_wait = hub.handshake.close();
    let purpose = Purpose::Initialize { identifier: None, link: None };
    let (request, answer) = hub.own("initialize", Some(&params), purpose, refused);
    let opened = legacy::initialize(hub, &request).await;
    hub.pending.take(&request.id);
    opened?;
    let accepted = answer.await.is_ok_and(|answer| answer.result().is_some());
    let Some(session) = hub.sessions.current().filter(|now| accepted && now.generation != lost.generation) else {
        return Err(McpError::SessionLost);
    };
    if session.version() != lost.version() {
        tracing::warn!("the server agreed on another revision of the protocol than before");
    }
    legacy::tell(hub, &session, Bytes::from_static(INITIALIZED), refused).await?;
    listen::ensure(hub);
    ask_again(hub, refused).await;
    Ok(())
}

/// Asks the new session for what the lost one kept up. What fails is told to the person; the client cannot be.
async fn ask_again(hub: &Arc<Hub>, refused: Refused) {
    let end = Instant::now() + ASKED_WITHIN;
    let (mut under_way, mut late) = (JoinSet::new(), 0);
    for change in hub.kept.all() {
        if under_way.len() >= AT_ONCE {
            under_way.join_next().await;
        }
        if Instant::now() >= end {
            late += 1;
            continue;
        }
        let hub = Arc::clone(hub);
        under_way.spawn(async move { ask(&hub, change, refused, end).await });
    }
    while under_way.join_next().await.is_some() {}
    if late > 0 {
        tracing::warn!(subscriptions = late, "{LACKING}: there was no time left to ask for all");
    }
}

const LACKING: &str = "the new session does not have what the lost one had";

async fn ask(hub: &Arc<Hub>, change: Change, refused: Refused, end: Instant) {
    let (request, answer) = hub.own(change.method(), Some(&change.params()), Purpose::Plain, refused);
    let asked = async {
        legacy::ask_once(hub, &request).await?;
        answer.await.map_err(|_| McpError::StreamEnded)
    };
    let outcome = timeout_at(end, asked).await;
    hub.pending.take(&request.id);
    let method = change.method();
    match outcome {
        Ok(Ok(answer)) if answer.result().is_some() => {}
        Ok(Ok(_)) => {
            hub.kept.forget(&change);
            tracing::warn!(method, reason = "mcp.rpc", "{LACKING}: the server refuses it");
        }
        Ok(Err(error)) => tracing::warn!(method, reason = error.code(), "{LACKING}: {}", explanation(&error)),
        Err(_) => tracing::warn!(method, reason = "fetch.timeout", "{LACKING}: the server does not answer"),
    }
}
