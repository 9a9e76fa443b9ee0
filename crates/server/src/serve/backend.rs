//! The service inside the endpoint: an HTTP upstream or the demo server.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body_util::{Either, combinators::BoxBody};
use pin_project_lite::pin_project;
use portcullis_endpoint::{Admitted, Plain};
use portcullis_gateway::HttpUpstream;
use portcullis_session::CapacityPermit;
use tower_service::Service;

use super::{
    legacy_calls::{LegacyBody, LegacyCalls, LegacyFuture},
    sessions::initialize::{InitializeCalls, InitializeFuture},
};
use crate::{
    demo::DemoService,
    metrics::{Measured, WorkerMetrics},
};

/// An upstream of one worker.
#[derive(Clone)]
pub(super) struct Backend {
    service: BackendService,
    initialize_calls: Arc<InitializeCalls>,
    legacy_calls: Arc<LegacyCalls>,
    metrics: Option<Arc<WorkerMetrics>>,
}

#[derive(Clone)]
pub(super) enum BackendService {
    /// Boxed, so that the clone for each request stays small.
    Demo(Box<Plain<DemoService>>),
    Http(HttpUpstream),
}

/// The body of an upstream's response.
pub(super) type BackendBody = Either<BoxBody<Bytes, Infallible>, LegacyBody>;

impl Backend {
    pub(super) fn new(
        service: BackendService,
        initialize_calls: Arc<InitializeCalls>,
        legacy_calls: Arc<LegacyCalls>,
        metrics: Option<Arc<WorkerMetrics>>,
    ) -> Self {
        Self { service, initialize_calls, legacy_calls, metrics }
    }
}

impl Service<Admitted> for Backend {
    type Response = Response<BackendBody>;
    type Error = Infallible;
    type Future = Measured<BackendFuture>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match &mut self.service {
            BackendService::Demo(demo) => demo.poll_ready(cx),
            BackendService::Http(upstream) => upstream.poll_ready(cx),
        }
    }

    fn call(&mut self, admitted: Admitted) -> Measured<BackendFuture> {
        let call = self.start(admitted);
        Measured::new(call, self.metrics.as_ref())
    }
}

impl Backend {
    fn start(&mut self, admitted: Admitted) -> BackendFuture {
        let room = admitted.extensions().get::<CapacityPermit>().cloned();
        let call = match &mut self.service {
            BackendService::Demo(demo) => BackendFuture::Demo { future: demo.call(admitted) },
            BackendService::Http(upstream) => match self.legacy_calls.superseded_by(&admitted) {
                None => {
                    let forward = |admitted| upstream.call(admitted);
                    BackendFuture::Http { future: self.legacy_calls.start(admitted, forward) }
                }
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
        match room {
            Some(room) => BackendFuture::InitializeFuture { future: self.initialize_calls.start(call, room) },
            None => call,
        }
    }
}

pin_project! {
    /// The future of the upstream's response.
    #[project = Projected]
    pub(super) enum BackendFuture {
        Demo { #[pin] future: <Plain<DemoService> as Service<Admitted>>::Future },
        Http { #[pin] future: LegacyFuture },
        Superseding { future: Pin<Box<dyn Future<Output = Result<Response<LegacyBody>, Infallible>> + Send>> },
        InitializeFuture { #[pin] future: InitializeFuture },
    }
}

impl Future for BackendFuture {
    type Output = Result<Response<BackendBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Demo { future } => future.poll(cx).map_ok(|response| response.map(Either::Left)),
            Projected::InitializeFuture { future } => future.poll(cx).map(Ok),
            Projected::Superseding { future } => {
                future.as_mut().poll(cx).map_ok(|response| response.map(Either::Right))
            }
            Projected::Http { future } => future.poll(cx).map_ok(|response| response.map(Either::Right)),
        }
    }
}
