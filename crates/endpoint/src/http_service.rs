use std::task::{Context, Poll};

use http::Request;
use tower_service::Service;

use crate::admitted::{Admitted, AdmittedBody};

/// Adapts a service of HTTP requests, such as rmcp's or axum's, to [`Admitted`] requests.
///
/// The service finds the [`Caller`](portcullis_guard::Caller), and with it the principal, in the
/// request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct HttpService<S> {
    service: S,
}

impl<S> HttpService<S> {
    /// Wraps a service.
    pub fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S: Service<Request<AdmittedBody>>> Service<Admitted> for HttpService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, admitted: Admitted) -> S::Future {
        self.service.call(admitted.into_request())
    }
}
