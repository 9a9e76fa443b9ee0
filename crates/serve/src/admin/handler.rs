//! Requests of administrators, from their head to their response.

use std::{net::SocketAddr, pin::Pin, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use portcullis_audit::AdminPeer;
use tokio::{sync::OwnedSemaphorePermit, task};

use super::{
    access::{AccessPolicy, Role},
    authenticated::Authenticated,
    dropping, ending, grants,
    grants::{EndGrants, ListGrants},
    listing,
    report::Report,
    request::{self, ListRequest, Route},
    response::{self, AdminError, json},
};
use crate::{
    connection::{Handler, request_body::RequestBody},
    state::ServerState,
};

/// The maximum size of a body in bytes.
const MAX_BODY: usize = 16 << 10;

/// What requests of administrators need.
pub(super) struct AdminContext {
    pub(super) state: Arc<ArcSwap<ServerState>>,
    pub(super) policy: AccessPolicy,
}

/// Responds to the requests of one connection.
#[derive(Clone)]
pub(super) struct AdminHandler {
    pub(super) context: Arc<AdminContext>,
    pub(super) peer: AdminPeer,
    pub(super) authenticated: Authenticated,
    /// The permit of the connection, which its actions hold, too.
    pub(super) permit: Arc<OwnedSemaphorePermit>,
}

impl Handler for AdminHandler {
    type Body = Full<Bytes>;
    type Future = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;

    fn handle(&self, request: Request<RequestBody<Incoming>>, _: SocketAddr) -> Self::Future {
        let Self {
            context,
            peer,
            authenticated,
            permit,
        } = self.clone();
        // A task of its own, so that the action is completed and reported even if the client
        // disconnects.
        let action = tokio::spawn(async move {
            let _permit = permit;
            let mut report = Report::new(peer);
            let result = context.respond(request, &authenticated, &mut report).await;
            report.finish(&context.state.load(), result.as_ref().err());
            result.unwrap_or_else(|error| error.response())
        });
        Box::pin(async move { action.await.unwrap_or_else(|_| interrupted().response()) })
    }
}

impl AdminContext {
    /// Performs the action of a request, and adds it to the report.
    async fn respond(
        &self,
        request: Request<RequestBody<Incoming>>,
        authenticated: &Authenticated,
        report: &mut Report,
    ) -> Result<Response<Full<Bytes>>, AdminError> {
        let (head, body) = request.into_parts();
        let role = self.policy.check(&head)?;
        authenticated.set();
        let route = Route::of(&head)?;
        report.action = route.action();
        if role != Role::Administrator && route != Route::ReadMetrics {
            return Err(AdminError::forbidden(
                "admin.token_restricted",
                "the token allows only to read the metrics",
            ));
        }
        let state = self.state.load_full();
        match route {
            Route::ListSessions => {
                let request = ListRequest::parse(head.uri.query().unwrap_or_default())?;
                report.owner = request.owner.clone();
                report.session = request.session;
                let page = in_background(move || listing::list(&state, &request)).await?;
                Ok(json(StatusCode::OK, &page))
            }
            Route::ReadMetrics => {
                report.is_routine = true;
                // There are metrics wherever there is this listener.
                let metrics = in_background(move || state.metrics()).await?;
                Ok(response::metrics(metrics.unwrap_or_default()))
            }
            Route::EndSessions => {
                let (target, note) = request::parse_end(&read(body).await?)?;
                report.set_target(&target);
                report.note = note;
                let ending = in_background(move || ending::begin(&state, target)).await??;
                report.sessions_ended = Some(ending.result.sessions_ended);
                report.streams_ended = Some(ending.result.streams_ended);
                let result = ending.confirmed().await?;
                Ok(json(StatusCode::OK, &result))
            }
            Route::ListGrants => {
                let request = ListGrants::parse(head.uri.query().unwrap_or_default())?;
                report.set_grants(&request.filter);
                let page = grants::list(&state, &request).await?;
                Ok(json(StatusCode::OK, &page))
            }
            Route::EndGrants => {
                let request = EndGrants::parse(&read(body).await?)?;
                report.set_grants(&request.filter);
                report.note = request.note.clone();
                let result = grants::end(&state, &request, &mut report.grants_ended).await?;
                Ok(json(StatusCode::OK, &result))
            }
            Route::DropTokens => {
                let request = request::parse_drop(&read(body).await?)?;
                report.owner.issuer = Some(request.issuer.clone());
                report.note = request.note;
                let dropping = dropping::begin(&state, &request.issuer).await?;
                report.tokens_dropped = Some(dropping.result.tokens_dropped);
                report.streams_ended = Some(dropping.result.streams_ended);
                let result = dropping.confirmed().await?;
                Ok(json(StatusCode::OK, &result))
            }
        }
    }
}

async fn read(body: RequestBody<Incoming>) -> Result<Bytes, AdminError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("the body has more than {MAX_BODY} bytes");
            Err(AdminError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "admin.body_too_large",
                message,
            ))
        }
        Err(_) => Err(AdminError::new(
            StatusCode::REQUEST_TIMEOUT,
            "admin.body_incomplete",
            "the body is not complete",
        )),
    }
}

/// Runs work that examines all sessions, so that it does not delay the control runtime.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AdminError> {
    task::spawn_blocking(work).await.map_err(|_| interrupted())
}

fn interrupted() -> AdminError {
    AdminError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "server.interrupted",
        "the action was interrupted",
    )
}
