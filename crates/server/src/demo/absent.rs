//! In place of the demo server, in packages without the feature `dev`: a service of which there is no value.

use std::{
    convert::Infallible,
    future::Ready,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use tower_service::Service;

/// The service behind the guard and the endpoint.
#[derive(Clone, Debug)]
pub(crate) enum DemoService {}

/// Returns an error, because this program has no demo server.
///
/// # Errors
/// Always: this package has no demo server.
pub(crate) fn service() -> anyhow::Result<DemoService> {
    Err(absent("upstream = \"demo\""))
}

/// Returns the error for something that only other packages have, with the names of these packages.
pub(crate) fn absent(what: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{what} is for development and not in this package; it is in the archives of the release, in the npm package \
         (`npx portcullis-mcp`), and in a program that `cargo install portcullis` builds"
    )
}

impl<Body> Service<Request<Body>> for DemoService {
    type Response = Response<BoxBody<Bytes, Infallible>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match *self {}
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        match *self {}
    }
}
