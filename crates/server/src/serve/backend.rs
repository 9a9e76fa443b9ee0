//! What stands behind the endpoint: one type for all kinds of upstream.

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

use super::opening::{Opening, Openings};
use crate::demo::DemoService;

/// An upstream of one worker.
#[derive(Clone)]
pub(super) struct Backend {
    kind: Kind,
    openings: Arc<Openings>,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// Boxed, so that what is cloned and held for each request stays small.
    Demo(Box<Plain<DemoService>>),
    Http(HttpUpstream),
}

/// The body of an upstream's answer.
pub(super) type BackendBody = Either<BoxBody<Bytes, Infallible>, UpstreamBody>;

impl Backend {
    pub(super) fn new(kind: Kind, openings: Arc<Openings>) -> Self {
        Self { kind, openings }
    }
}

impl Service<Admitted> for Backend {
    type Response = Response<BackendBody>;
    type Error = Infallible;
    type Future = BackendFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match &mut self.kind {
            Kind::Demo(service) => service.poll_ready(cx),
            Kind::Http(upstream) => upstream.poll_ready(cx),
        }
    }

    fn call(&mut self, admitted: Admitted) -> BackendFuture {
        let room = admitted.extensions().get::<CapacityPermit>().cloned();
        let call = match &mut self.kind {
            Kind::Demo(service) => BackendFuture::Demo { future: service.call(admitted) },
            Kind::Http(upstream) => BackendFuture::Http { future: upstream.call(admitted) },
        };
        match room {
            Some(room) => BackendFuture::Opening { future: self.openings.start(call, room) },
            None => call,
        }
    }
}

pin_project! {
    /// The answer in the making.
    #[project = Projected]
    pub(super) enum BackendFuture {
        Demo { #[pin] future: <Plain<DemoService> as Service<Admitted>>::Future },
        Http { #[pin] future: <HttpUpstream as Service<Admitted>>::Future },
        Opening { #[pin] future: Opening },
    }
}

impl Future for BackendFuture {
    type Output = Result<Response<BackendBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Demo { future } => future.poll(cx).map_ok(|response| response.map(Either::Left)),
            Projected::Opening { future } => future.poll(cx).map(Ok),
            Projected::Http { future } => future.poll(cx).map_ok(|response| response.map(Either::Right)),
        }
    }
}
