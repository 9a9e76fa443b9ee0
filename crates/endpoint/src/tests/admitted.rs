//! [`Admitted`](crate::Admitted) requests, and the readiness of the endpoint.

use std::{
    convert::Infallible,
    future::ready,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use portcullis_guard::GuardLayer;
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use super::fixture::*;
use crate::{Admitted, AdmittedBody, EndpointLayer, HttpService};

#[derive(Clone, Debug, PartialEq)]
struct Mark(u8);

/// The inner service receives the client's request and the body that was checked.
#[tokio::test]
async fn the_inner_service_receives_the_request_unchanged() {
    let fixture = Fixture::open();
    let seen = Arc::new(Mutex::new(None));
    let inner = tower::service_fn({
        let seen = Arc::clone(&seen);
        move |admitted: Admitted| {
            *seen.lock() = Some(admitted);
            ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())))
        }
    });
    let endpoint = EndpointLayer::new(fixture.settings.clone())
        .unwrap()
        .layer(inner);
    let message = Bytes::from(initialize().to_string());
    let mut request = fixture.request(
        "POST",
        &[("content-type", "application/json")],
        Full::new(message.clone()),
    );
    *request.uri_mut() = "/mcp?page=2".parse().unwrap();
    *request.version_mut() = Version::HTTP_10;
    request.extensions_mut().insert(Mark(7));
    let response = GuardLayer::new(Arc::clone(&fixture.settings.resource))
        .layer(endpoint)
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(response.status(), 200);

    let admitted = seen.lock().take().unwrap();
    assert_eq!(admitted.uri().to_string().as_str(), "/mcp?page=2");
    assert_eq!(admitted.query(), Some("page=2"));
    assert_eq!(admitted.version(), Version::HTTP_10);
    assert_eq!(admitted.extensions().get(), Some(&Mark(7)));

    let mut body = admitted.into_request().into_body();
    assert!(!body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(message.len() as u64));
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        message
    );
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());

    let empty = AdmittedBody::default();
    assert!(empty.is_end_stream());
    assert_eq!(empty.size_hint().exact(), Some(0));
}

/// An endpoint is ready when its inner service is, also if that is an adapted HTTP service.
#[tokio::test]
async fn readiness_is_that_of_the_service() {
    #[derive(Clone)]
    struct Busy;
    impl<R> Service<R> for Busy {
        type Response = Response<Full<Bytes>>;
        type Error = Busy;
        type Future = std::future::Pending<Result<Self::Response, Busy>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Busy>> {
            Poll::Ready(Err(Busy))
        }

        fn call(&mut self, _: R) -> Self::Future {
            std::future::pending()
        }
    }
    fn is_busy(mut service: impl Service<Request<Full<Bytes>>, Error = Busy>) -> bool {
        matches!(
            service.poll_ready(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(Err(Busy))
        )
    }
    let layer = EndpointLayer::new(Fixture::open().settings).unwrap();
    assert!(is_busy(layer.layer(Busy)));
    assert!(is_busy(layer.layer(HttpService::new(Busy))));
}
