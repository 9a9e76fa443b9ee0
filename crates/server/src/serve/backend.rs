//! The service inside the endpoint: an HTTP upstream or the demo server.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::Response;
use http_body_util::Either;
use pin_project_lite::pin_project;
use portcullis_endpoint::{Admitted, Plain};
use portcullis_gateway::HttpUpstream;
use portcullis_guard::Caller;
use portcullis_metadata::Clock;
use portcullis_session::CapacityPermit;
use tower_service::Service;

use super::{
    backend_body::BackendBody,
    legacy_calls::{LegacyBody, LegacyCalls, LegacyFuture},
    sessions::initialize::{InitializeCalls, InitializeFuture},
};
use crate::demo::DemoService;

/// An upstream of one worker.
#[derive(Clone)]
pub(super) struct Backend {
    service: BackendService,
    initialize_calls: Arc<InitializeCalls>,
    legacy_calls: Arc<LegacyCalls>,
}

/// What a backend calls.
#[derive(Clone)]
pub(super) enum BackendService {
    /// Boxed, so that the clone for each request stays small.
    Demo(Box<DemoUpstream>),
    /// An upstream over HTTP.
    Http(HttpUpstream),
}

/// The demo server, and the clock that measures its time.
#[derive(Clone)]
pub(super) struct DemoUpstream {
    pub(super) service: Plain<DemoService>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Backend {
    /// Returns the backend of one worker. The calls are those of its resource, which all workers share.
    pub(super) fn new(
        service: BackendService,
        initialize_calls: Arc<InitializeCalls>,
        legacy_calls: Arc<LegacyCalls>,
    ) -> Self {
        Self { service, initialize_calls, legacy_calls }
    }
}

impl Service<Admitted> for Backend {
    type Response = Response<BackendBody>;
    type Error = Infallible;
    type Future = BackendFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match &mut self.service {
            BackendService::Demo(demo) => demo.service.poll_ready(cx),
            BackendService::Http(upstream) => upstream.poll_ready(cx),
        }
    }

    fn call(&mut self, admitted: Admitted) -> BackendFuture {
        let permit = admitted.extensions().get::<CapacityPermit>().cloned();
        let call = match &mut self.service {
            BackendService::Demo(demo) => {
                let caller = admitted.caller().clone();
                let clock = Arc::clone(&demo.clock);
                caller.record_upstream_start(clock.monotonic());
                BackendFuture::Demo { future: demo.service.call(admitted), caller, clock }
            }
            BackendService::Http(upstream) => match self.legacy_calls.superseded_by(&admitted) {
                None => {
                    let forward = |admitted| upstream.call(admitted);
                    BackendFuture::Http { future: self.legacy_calls.start(admitted, forward) }
                }
                // The earlier requests of the session end first.
                Some(superseded) => {
                    let mut upstream = upstream.clone();
                    let future = Box::pin(async move {
                        superseded.end().await;
                        let Ok(response) = upstream.call(admitted).await;
                        Ok(response.map(LegacyBody::from))
                    });
                    BackendFuture::Superseding { future }
                }
            },
        };
        // Only a request that opens a session has a permit.
        match permit {
            Some(permit) => BackendFuture::Initialize { future: self.initialize_calls.start(call, permit) },
            None => call,
        }
    }
}

pin_project! {
    /// The future of the upstream's response.
    #[project = Projected]
    pub(super) enum BackendFuture {
        Demo {
            #[pin]
            future: <Plain<DemoService> as Service<Admitted>>::Future,
            caller: Caller,
            clock: Arc<dyn Clock>,
        },
        Http { #[pin] future: LegacyFuture },
        Superseding { future: Pin<Box<dyn Future<Output = Result<Response<LegacyBody>, Infallible>> + Send>> },
        Initialize { #[pin] future: InitializeFuture },
    }
}

impl Future for BackendFuture {
    type Output = Result<Response<BackendBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Demo { future, caller, clock } => {
                let response = ready!(future.poll(cx));
                caller.record_upstream_end(clock.monotonic());
                Poll::Ready(response.map(|response| response.map(Either::Left)))
            }
            Projected::Initialize { future } => future.poll(cx).map(Ok),
            Projected::Superseding { future } => {
                future.as_mut().poll(cx).map_ok(|response| response.map(Either::Right))
            }
            Projected::Http { future } => future.poll(cx).map_ok(|response| response.map(Either::Right)),
        }
    }
}
