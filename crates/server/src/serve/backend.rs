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
use portcullis_gateway::{HttpUpstream, UpstreamBody};
use portcullis_session::CapacityPermit;
use tower_service::Service;

use super::sessions::initialize::{InitializeCalls, InitializeFuture};
use crate::demo::DemoService;

/// An upstream of one worker.
#[derive(Clone)]
pub(super) struct Backend {
    service: BackendService,
    initialize_calls: Arc<InitializeCalls>,
}

#[derive(Clone)]
pub(super) enum BackendService {
    /// Boxed, so that the clone for each request stays small.
    Demo(Box<Plain<DemoService>>),
    Http(HttpUpstream),
}

/// The body of an upstream's response.
pub(super) type BackendBody = Either<BoxBody<Bytes, Infallible>, UpstreamBody>;

impl Backend {
    pub(super) fn new(service: BackendService, initialize_calls: Arc<InitializeCalls>) -> Self {
        Self { service, initialize_calls }
    }
}

impl Service<Admitted> for Backend {
    type Response = Response<BackendBody>;
    type Error = Infallible;
    type Future = BackendFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match &mut self.service {
            BackendService::Demo(demo) => demo.poll_ready(cx),
            BackendService::Http(upstream) => upstream.poll_ready(cx),
        }
    }

    fn call(&mut self, admitted: Admitted) -> BackendFuture {
        let room = admitted.extensions().get::<CapacityPermit>().cloned();
        let call = match &mut self.service {
            BackendService::Demo(demo) => BackendFuture::Demo { future: demo.call(admitted) },
            BackendService::Http(upstream) => BackendFuture::Http { future: upstream.call(admitted) },
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
        Http { #[pin] future: <HttpUpstream as Service<Admitted>>::Future },
        InitializeFuture { #[pin] future: InitializeFuture },
    }
}

impl Future for BackendFuture {
    type Output = Result<Response<BackendBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Demo { future } => future.poll(cx).map_ok(|response| response.map(Either::Left)),
            Projected::InitializeFuture { future } => future.poll(cx).map(Ok),
            Projected::Http { future } => future.poll(cx).map_ok(|response| response.map(Either::Right)),
        }
    }
}
