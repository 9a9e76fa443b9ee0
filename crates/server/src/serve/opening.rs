//! Calls that open an upstream session run to their end, be it that their client goes away: else the upstream might hold a
//! session that nobody knows of.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Response, StatusCode};
use http_body_util::{BodyExt as _, Either, Empty};
use portcullis_endpoint::BackendSessionGuard;
use portcullis_metadata::ResourceUri;
use portcullis_session::CapacityPermit;
use tokio::{sync::oneshot, time::timeout};

use super::{backend::BackendBody, closer::Leftovers};

/// How long the upstream has to answer a client that has gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the sessions of one resource's upstream are, and who ends those that are left over.
pub(super) struct Openings {
    pub(super) resource: ResourceUri,
    pub(super) header: HeaderName,
    pub(super) leftovers: Leftovers,
}

/// The answer to come.
pub(super) struct Opening(oneshot::Receiver<Response<BackendBody>>);

impl Openings {
    /// Starts a call. The room that its session would have stays taken until the call has ended.
    pub(super) fn start<F>(self: &Arc<Self>, call: F, room: CapacityPermit) -> Opening
    where
        F: Future<Output = Result<Response<BackendBody>, Infallible>> + Send + 'static,
    {
        let (mut answer, awaited) = oneshot::channel();
        let openings = Arc::clone(self);
        tokio::spawn(async move {
            let mut call = pin!(call);
            let answered = tokio::select! {
                answered = &mut call => Some(answered),
                () = answer.closed() => {
                    tracing::debug!("a client has gone before its session was opened");
                    timeout(PATIENCE, call).await.ok()
                }
            };
            match answered {
                Some(Ok(mut response)) => {
                    openings.end_unless_recorded(&mut response);
                    drop(answer.send(response));
                }
                Some(Err(infallible)) => match infallible {},
                None => tracing::warn!("an upstream session may be left over: its opening was never answered"),
            }
            drop(room);
        });
        Opening(awaited)
    }

    /// Has the session that an answer names ended if nobody records it: the client has gone, or the endpoint refuses it.
    fn end_unless_recorded(self: &Arc<Self>, response: &mut Response<BackendBody>) {
        let opened = response.status().is_success().then(|| response.headers().get(&self.header)).flatten();
        let Some(backend) = opened.map(|backend| Box::<[u8]>::from(backend.as_bytes())) else { return };
        let openings = Arc::clone(self);
        response.extensions_mut().insert(BackendSessionGuard::new(move || {
            tracing::info!("an upstream session is over before it began");
            openings.leftovers.add(openings.resource.clone(), backend.clone());
        }));
    }
}

impl Future for Opening {
    type Output = Response<BackendBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(cx)).unwrap_or_else(|_| lost()))
    }
}

/// The call's task is gone, which nothing but the end of its runtime brings about.
fn lost() -> Response<BackendBody> {
    let mut response = Response::new(Either::Left(Empty::<Bytes>::new().boxed()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
