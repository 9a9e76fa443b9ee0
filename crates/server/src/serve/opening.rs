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
use portcullis_metadata::ResourceUri;
use portcullis_session::HeldRoom;
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
pub(super) struct Opening(oneshot::Receiver<Unclaimed>);

/// An answer until somebody takes it. Dropped before, the session that it names is over.
struct Unclaimed {
    response: Option<Response<BackendBody>>,
    openings: Arc<Openings>,
}

impl Openings {
    /// Starts a call. The room that its session would have stays taken until the call has ended.
    pub(super) fn start<F>(self: &Arc<Self>, call: F, room: HeldRoom) -> Opening
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
                Some(Ok(response)) => drop(answer.send(Unclaimed { response: Some(response), openings })),
                Some(Err(infallible)) => match infallible {},
                None => tracing::warn!("an upstream session may be left over: its opening was never answered"),
            }
            drop(room);
        });
        Opening(awaited)
    }
}

impl Future for Opening {
    type Output = Response<BackendBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = ready!(Pin::new(&mut self.0).poll(cx)).ok();
        Poll::Ready(answered.and_then(|mut unclaimed| unclaimed.response.take()).unwrap_or_else(lost))
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let Some(response) = self.response.take() else { return };
        let opened = response.status().is_success().then(|| response.headers().get(&self.openings.header)).flatten();
        if let Some(backend) = opened {
            tracing::info!("an upstream session is over before it began: its client has gone");
            self.openings.leftovers.add(self.openings.resource.clone(), backend.as_bytes().into());
        }
    }
}

/// The call's task is gone, which nothing but the end of its runtime brings about.
fn lost() -> Response<BackendBody> {
    let mut response = Response::new(Either::Left(Empty::<Bytes>::new().boxed()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
