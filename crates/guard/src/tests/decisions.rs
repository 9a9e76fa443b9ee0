use std::{
    future::{Pending, pending},
    net::SocketAddr,
    task::{Context, Poll},
};

use http::{Method, Request, Response, StatusCode};
use portcullis_testkit::ScriptedFetch;
use tower_layer::Layer;
use tower_service::Service;

use super::support::{METADATA_PATH, Setup, Told, With, request};
use crate::{Caller, GuardLayer, Operation, Peer, RejectionCode};

/// J1, J2: one decision for every request, with the reason code and without the query.
#[tokio::test]
async fn every_request_is_told_once() {
    let setup = Setup::new().require("read");
    let (good, poor) = (setup.token("read"), setup.token(""));
    let preflight = request(Method::OPTIONS, "/mcp?q=1")
        .with("origin", "https://a.example")
        .with("access-control-request-method", "POST");
    let requests = [
        (request(Method::GET, METADATA_PATH), 200, None, None),
        (request(Method::PUT, METADATA_PATH), 405, Some("metadata.method"), None),
        (preflight, 204, None, None),
        (request(Method::POST, "/mcp?q=1"), 401, Some("bearer.missing"), None),
        (request(Method::POST, "/mcp?q=1").bearer("x"), 401, Some("token.malformed"), None),
        (request(Method::POST, "/mcp?q=1").bearer(&poor), 403, Some("scope.insufficient"), Some("alice")),
        (request(Method::POST, "/mcp?q=1").bearer(&good), 200, None, Some("alice")),
        (request(Method::POST, "/mcp?q=1").with("host", "b.example"), 400, Some("host.repeated"), None),
    ];
    for (position, (mut request, status, code, subject)) in requests.into_iter().enumerate() {
        request.extensions_mut().insert(Peer("192.0.2.7:1234".parse::<SocketAddr>().unwrap()));
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = setup.send(request).await;
        let told = setup.sink.all();
        assert_eq!(told.len(), position + 1);
        let expected = Told {
            id: answer.header("x-request-id").unwrap().to_owned(),
            method,
            path,
            status,
            code,
            subject: subject.map(str::to_owned),
            client_address: Some("192.0.2.7".to_owned()),
            operation: None,
            report_only_denial: None,
        };
        assert_eq!(told[position], expected);
        assert_eq!(answer.status.as_u16(), status);
    }
}

/// J1: an inner service names its reason; the code is told and goes no further.
#[tokio::test]
async fn inner_refusals_are_told() {
    let setup = Setup::new();
    let inner = tower::service_fn(async |_: Request<()>| {
        let mut response = Response::new(String::new());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response.extensions_mut().insert(RejectionCode("session.unknown"));
        Ok::<_, std::convert::Infallible>(response)
    });
    let mut guard = GuardLayer::new(setup.resource()).layer(inner);
    let response = guard.call(request(Method::POST, "/mcp").bearer(&setup.token(""))).await.unwrap();
    assert_eq!((setup.sink.only().status, setup.sink.only().code), (400, Some("session.unknown")));
    assert!(response.extensions().get::<RejectionCode>().is_none());
}

/// J4: what the inner service says of the request through its caller is told with the decision; the first word counts.
#[tokio::test]
async fn what_the_inner_service_reports_is_told() {
    let setup = Setup::new();
    let inner = tower::service_fn(async |request: Request<()>| {
        let caller = request.extensions().get::<Caller>().unwrap().clone();
        for tool in ["add", "drop"] {
            caller.record_operation(Operation::new("tools/call", Some(tool)));
        }
        for code in ["claim.team", "claim.other"] {
            caller.record_report_only_denial(code);
        }
        Ok::<_, std::convert::Infallible>(Response::new(String::new()))
    });
    let mut guard = GuardLayer::new(setup.resource()).layer(inner);
    guard.call(request(Method::POST, "/mcp").bearer(&setup.token(""))).await.unwrap();
    let told = setup.sink.only();
    assert_eq!(
        (told.code, told.report_only_denial, told.subject.as_deref()),
        (None, Some("claim.team"), Some("alice"))
    );
    assert_eq!(told.operation, Some(Operation::new("tools/call", Some("add"))));
}

#[derive(Clone)]
struct Never;

impl Service<Request<()>> for Never {
    type Response = Response<String>;
    type Error = &'static str;
    type Future = Pending<Result<Response<String>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        pending()
    }
}

/// J1: a request whose client went away is told once, whether it waited for the issuer or the service.
#[tokio::test]
async fn a_client_that_goes_away_is_told() {
    let issuer = ScriptedFetch::new();
    let waiting = Setup::fetching(&issuer);
    issuer.publish(&waiting.forge);
    let gate = issuer.hang(waiting.forge.metadata_url());
    let setup = Setup::new();
    for (setup, subject) in [(&waiting, None), (&setup, Some("alice"))] {
        let mut guard = GuardLayer::new(setup.resource()).layer(Never);
        let mut future = Box::pin(guard.call(request(Method::POST, "/mcp").bearer(&setup.token(""))));
        for _ in 0..10 {
            let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
            assert!(polled);
            tokio::task::yield_now().await;
        }
        assert!(setup.sink.all().is_empty());
        drop(future);
        let told = setup.sink.only();
        assert_eq!((told.status, told.code, told.subject.as_deref()), (499, Some("client.gone"), subject));
    }
    drop(gate);
}

/// A guard is ready when the service behind it is.
#[tokio::test]
async fn readiness_is_that_of_the_service() {
    struct Busy;
    #[derive(Clone)]
    struct Full;
    impl Service<Request<()>> for Full {
        type Response = Response<String>;
        type Error = Busy;
        type Future = std::future::Pending<Result<Self::Response, Busy>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Busy>> {
            Poll::Ready(Err(Busy))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            pending()
        }
    }
    let mut guard = GuardLayer::new(Setup::new().resource()).layer(Full);
    let ready = guard.poll_ready(&mut Context::from_waker(std::task::Waker::noop()));
    assert!(matches!(ready, Poll::Ready(Err(Busy))));
}

/// J1: a request that the server itself gives up is not put down to its client.
#[tokio::test]
async fn a_request_that_is_shutting_down_is_told() {
    let setup = Setup::new();
    let resource = setup.resource();
    let future =
        GuardLayer::new(resource.clone()).layer(Never).call(request(Method::POST, "/mcp").bearer(&setup.token("")));
    resource.mark_shutting_down();
    drop(future);
    let told = setup.sink.only();
    assert_eq!((told.status, told.code), (503, Some("server.shutdown")));
}

/// J1: a service that fails without an answer is told, and its error goes on.
#[tokio::test]
async fn a_failing_service_is_told() {
    let setup = Setup::new();
    let inner = tower::service_fn(async |_: Request<()>| Err::<Response<String>, _>("broken"));
    let mut guard = GuardLayer::new(setup.resource()).layer(inner);
    let failed = guard.call(request(Method::POST, "/mcp").bearer(&setup.token(""))).await;
    assert_eq!(failed.map(|_| ()).unwrap_err(), "broken");
    assert_eq!((setup.sink.only().status, setup.sink.only().code), (500, Some("inner.failed")));
}
