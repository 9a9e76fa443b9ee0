//! What stands behind the endpoint: one type for all kinds of upstream.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body_util::{Either, combinators::BoxBody};
use pin_project_lite::pin_project;
use portcullis_endpoint::{Admitted, Plain};
use portcullis_gateway::{HttpUpstream, UpstreamBody};
use tower_service::Service;

use crate::demo::DemoService;

/// An upstream of one worker.
#[derive(Clone)]
pub(super) enum Backend {
    Demo(Plain<DemoService>),
    Http(HttpUpstream),
}

/// The body of an upstream's answer.
pub(super) type BackendBody = Either<BoxBody<Bytes, Infallible>, UpstreamBody>;

impl Service<Admitted> for Backend {
    type Response = Response<BackendBody>;
    type Error = Infallible;
    type Future = BackendFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Demo(service) => service.poll_ready(cx),
            Self::Http(upstream) => upstream.poll_ready(cx),
        }
    }

    fn call(&mut self, admitted: Admitted) -> BackendFuture {
        match self {
            Self::Demo(service) => BackendFuture::Demo { future: service.call(admitted) },
            Self::Http(upstream) => BackendFuture::Http { future: upstream.call(admitted) },
        }
    }
}

pin_project! {
    /// The answer in the making.
    #[project = Projected]
    pub(super) enum BackendFuture {
        Demo { #[pin] future: <Plain<DemoService> as Service<Admitted>>::Future },
        Http { #[pin] future: <HttpUpstream as Service<Admitted>>::Future },
    }
}

impl Future for BackendFuture {
    type Output = Result<Response<BackendBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Demo { future } => future.poll(cx).map_ok(|response| response.map(Either::Left)),
            Projected::Http { future } => future.poll(cx).map_ok(|response| response.map(Either::Right)),
        }
    }
}
