//! The service inside the endpoint: an HTTP upstream or the demo server.

pub(super) mod body;
pub(super) mod legacy_calls;

use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Response;
use http_body_util::Either;
use pin_project_lite::pin_project;
use portcullis_endpoint::Admitted;
use portcullis_gateway::HttpUpstream;
use portcullis_metadata::Clock;
use portcullis_session::CapacityPermit;
use tower_service::Service;

use self::{
    body::BackendBody,
    legacy_calls::{LegacyBody, LegacyCalls, LegacyFuture},
};
use super::sessions::initialize::{InitializeCalls, InitializeFuture};
use crate::demo::DemoServer;

/// What one worker calls for a resource.
#[derive(Clone)]
pub(super) enum Backend {
    /// The demo server, and the clock that measures its time.
    Demo {
        server: DemoServer,
        clock: Arc<dyn Clock>,
    },
    /// An upstream over HTTP.
    Http(HttpBackend),
}

/// An upstream over HTTP, and the calls of its resource, which all workers share.
#[derive(Clone)]
pub(super) struct HttpBackend {
    pub(super) upstream: HttpUpstream,
    pub(super) initialize_calls: Arc<InitializeCalls>,
    pub(super) legacy_calls: Arc<LegacyCalls>,
}

impl Service<Admitted> for Backend {
    type Response = Response<BackendBody>;
    type Error = Infallible;
    type Future = BackendFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Demo { .. } => Poll::Ready(Ok(())),
            Self::Http(http) => http.upstream.poll_ready(cx),
        }
    }

    fn call(&mut self, admitted: Admitted) -> BackendFuture {
        match self {
            Self::Demo { server, clock } => {
                let caller = admitted.caller();
                caller.record().upstream_starts(clock.monotonic());
                let response = server.respond(&admitted).map(Either::Left);
                caller.record().upstream_ends(clock.monotonic());
                BackendFuture::Demo {
                    future: ready(Ok(response)),
                }
            }
            Self::Http(http) => http.call(admitted),
        }
    }
}

impl HttpBackend {
    fn call(&mut self, admitted: Admitted) -> BackendFuture {
        let permit = admitted.extensions().get::<CapacityPermit>().cloned();
        let opening = permit.map(|permit| (permit, admitted.caller().clone()));
        let call = match self.legacy_calls.superseded_by(&admitted) {
            None => {
                let forward = |admitted| self.upstream.call(admitted);
                BackendFuture::Http {
                    future: self.legacy_calls.start(admitted, forward),
                }
            }
            // The earlier requests of the session end first.
            Some(superseded) => {
                let mut upstream = self.upstream.clone();
                let future = Box::pin(async move {
                    superseded.end().await;
                    let Ok(response) = upstream.call(admitted).await;
                    Ok(response.map(LegacyBody::from))
                });
                BackendFuture::Superseding { future }
            }
        };
        // Only a request that opens a session has a permit.
        match opening {
            Some((permit, caller)) => BackendFuture::Initialize {
                future: self.initialize_calls.start(call, permit, caller),
            },
            None => call,
        }
    }
}

pin_project! {
    /// The future of the response.
    #[project = Projected]
    pub(super) enum BackendFuture {
        Demo { #[pin] future: Ready<Result<Response<BackendBody>, Infallible>> },
        Http { #[pin] future: LegacyFuture },
        Superseding { future: Pin<Box<dyn Future<Output = Result<Response<LegacyBody>, Infallible>> + Send>> },
        Initialize { #[pin] future: InitializeFuture },
    }
}

impl Future for BackendFuture {
    type Output = Result<Response<BackendBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Demo { future } => future.poll(cx),
            Projected::Initialize { future } => future.poll(cx).map(Ok),
            Projected::Superseding { future } => future
                .as_mut()
                .poll(cx)
                .map_ok(|response| response.map(Either::Right)),
            Projected::Http { future } => future
                .poll(cx)
                .map_ok(|response| response.map(Either::Right)),
        }
    }
}
