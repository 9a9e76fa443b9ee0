//! Each request is reported once, with status, reason and times.

use std::{
    future::{Pending, pending},
    net::SocketAddr,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use portcullis_metadata::Clock;
use portcullis_testkit::ScriptedFetch;
use tower_layer::Layer;
use tower_service::Service;

use super::support::{METADATA_PATH, RecordedDecision, Setup, With, request};
use crate::{Caller, GuardLayer, Operation, Peer, RejectionCode, Timing, trace::TraceSettings};

/// J1, J2: one decision for every request, with the reason code and without the query.
#[tokio::test]
async fn every_request_is_reported_once() {
    let setup = Setup::new().require("read");
    let good = setup.token("read");
    let poor = setup.token("");
    let preflight = request(Method::OPTIONS, "/mcp?q=1")
        .with("origin", "https://a.example")
        .with("access-control-request-method", "POST");
    let requests = [
        (request(Method::GET, METADATA_PATH), 200, None, None),
        (
            request(Method::PUT, METADATA_PATH),
            405,
            Some("metadata.method"),
            None,
        ),
        (preflight, 204, None, None),
        (
            request(Method::POST, "/mcp?q=1"),
            401,
            Some("bearer.missing"),
            None,
        ),
        (
            request(Method::POST, "/mcp?q=1").bearer("x"),
            401,
            Some("token.malformed"),
            None,
        ),
        (
            request(Method::POST, "/mcp?q=1").bearer(&poor),
            403,
            Some("scope.insufficient"),
            Some("alice"),
        ),
        (
            request(Method::POST, "/mcp?q=1").bearer(&good),
            200,
            None,
            Some("alice"),
        ),
        (
            request(Method::POST, "/mcp?q=1").with("host", "b.example"),
            400,
            Some("host.repeated"),
            None,
        ),
    ];
    for (position, (mut request, status, code, subject)) in requests.into_iter().enumerate() {
        request
            .extensions_mut()
            .insert(Peer("192.0.2.7:1234".parse::<SocketAddr>().unwrap()));
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let answer = setup.send(request).await;
        let decision = setup.sink.all();
        assert_eq!(decision.len(), position + 1);
        let expected = RecordedDecision {
            id: answer.header("x-request-id").unwrap().to_owned(),
            method,
            path,
            status,
            code,
            subject: subject.map(str::to_owned),
            client_address: Some("192.0.2.7".to_owned()),
            operation: None,
            report_only_denial: None,
            upstream: None,
            verification: None,
        };
        assert_eq!(decision[position], expected);
        assert_eq!(answer.status.as_u16(), status);
    }
}

/// J1: the reason code of an inner service is reported and does not reach the client.
#[tokio::test]
async fn inner_rejections_are_reported() {
    let setup = Setup::new();
    let inner = tower::service_fn(async |_: Request<()>| {
        let mut response = Response::new(String::new());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response
            .extensions_mut()
            .insert(RejectionCode("session.unknown"));
        Ok::<_, std::convert::Infallible>(response)
    });
    let mut guard = GuardLayer::new(setup.resource()).layer(inner);
    let response = guard
        .call(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await
        .unwrap();
    assert_eq!(setup.sink.only().status, 400);
    assert_eq!(setup.sink.only().code, Some("session.unknown"));
    assert!(response.extensions().get::<RejectionCode>().is_none());
}

/// J4: the decision has what the inner service records through the caller; the first record is
/// kept.
#[tokio::test]
async fn records_of_the_inner_service_are_reported() {
    let setup = Setup::new();
    let inner = tower::service_fn(async |request: Request<()>| {
        let caller = request.extensions().get::<Caller>().unwrap().clone();
        for tool in ["add", "drop"] {
            caller
                .record()
                .set_operation(Operation::new("tools/call", Some(tool)));
        }
        for code in ["claim.team", "claim.other"] {
            caller.record().set_report_only_denial(code);
        }
        Ok::<_, std::convert::Infallible>(Response::new(String::new()))
    });
    let mut guard = GuardLayer::new(setup.resource()).layer(inner);
    guard
        .call(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await
        .unwrap();
    let decision = setup.sink.only();
    assert_eq!(decision.code, None);
    assert_eq!(decision.report_only_denial, Some("claim.team"));
    assert_eq!(decision.subject.as_deref(), Some("alice"));
    assert_eq!(
        decision.operation,
        Some(Operation::new("tools/call", Some("add")))
    );
}

/// J1, J7: the decision has the time of the upstream, and whether the upstream has responded.
#[tokio::test]
async fn the_time_of_the_upstream_is_reported() {
    for has_ended in [true, false] {
        let setup = Setup::new();
        let clock = setup.clock.clone();
        let inner = tower::service_fn(move |request: Request<()>| {
            let clock = clock.clone();
            let caller = request.extensions().get::<Caller>().unwrap().clone();
            async move {
                clock.advance(Duration::from_secs(1));
                caller.record().upstream_starts(clock.monotonic());
                clock.advance(Duration::from_secs(2));
                if has_ended {
                    caller.record().upstream_ends(clock.monotonic());
                    clock.advance(Duration::from_secs(3));
                }
                Ok::<_, std::convert::Infallible>(Response::new(String::new()))
            }
        });
        let mut guard = GuardLayer::new(setup.resource()).layer(inner);
        guard
            .call(request(Method::POST, "/mcp").bearer(&setup.token("")))
            .await
            .unwrap();
        let expected = Timing {
            has_ended,
            ..Timing::new(Duration::from_secs(1), Duration::from_secs(2))
        };
        assert_eq!(setup.sink.only().upstream, Some(expected));
    }
}

/// J7: the verification of a token is measured for traces, and only if the token is not cached.
#[tokio::test]
async fn the_time_of_the_verification_is_reported_for_traces() {
    for has_traces in [true, false] {
        let mut setup = Setup::new();
        setup.settings.traces = has_traces.then(|| TraceSettings::new(1.0));
        let token = setup.token("");
        let resource = setup.resource();
        for is_cached in [false, true] {
            let mut guard = GuardLayer::new(resource.clone()).layer(setup.inner.clone());
            guard
                .call(request(Method::POST, "/mcp").bearer(&token))
                .await
                .unwrap();
            let verification = setup.sink.take().pop().unwrap().verification;
            assert_eq!(
                verification.is_some_and(|timing| timing.has_ended),
                has_traces && !is_cached
            );
        }
    }
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

/// J1: a request whose client disconnects is reported once, while it waits for the issuer or for
/// the service.
#[tokio::test]
async fn a_disconnected_client_is_reported() {
    let issuer = ScriptedFetch::new();
    let waiting = Setup::fetching(&issuer);
    issuer.publish(&waiting.test_issuer);
    let gate = issuer.hang(waiting.test_issuer.metadata_url());
    let setup = Setup::new();
    for (setup, subject) in [(&waiting, None), (&setup, Some("alice"))] {
        let mut guard = GuardLayer::new(setup.resource()).layer(Never);
        let mut future =
            Box::pin(guard.call(request(Method::POST, "/mcp").bearer(&setup.token(""))));
        for _ in 0..10 {
            let polled =
                std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
            assert!(polled);
            tokio::task::yield_now().await;
        }
        assert!(setup.sink.all().is_empty());
        drop(future);
        let decision = setup.sink.only();
        assert_eq!(decision.status, 499);
        assert_eq!(decision.code, Some("client.gone"));
        assert_eq!(decision.subject.as_deref(), subject);
    }
    drop(gate);
}

/// The guard is ready when the inner service is.
#[tokio::test]
async fn readiness_is_that_of_the_inner_service() {
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

/// J1: a request that is dropped at shutdown is not reported as `client.gone`.
#[tokio::test]
async fn a_shutdown_is_reported() {
    let setup = Setup::new();
    let resource = setup.resource();
    let future = GuardLayer::new(resource.clone())
        .layer(Never)
        .call(request(Method::POST, "/mcp").bearer(&setup.token("")));
    resource.mark_shutting_down();
    drop(future);
    let decision = setup.sink.only();
    assert_eq!(decision.status, 503);
    assert_eq!(decision.code, Some("server.shutdown"));
}

/// J1: a panic of the inner service is reported.
#[tokio::test]
async fn a_panic_is_reported() {
    let setup = Setup::new();
    let inner = tower::service_fn(async |_: Request<()>| -> Result<Response<String>, &str> {
        panic!("broken")
    });
    let mut guard = GuardLayer::new(setup.resource()).layer(inner);
    let call = guard.call(request(Method::POST, "/mcp").bearer(&setup.token("")));
    assert!(tokio::spawn(call).await.unwrap_err().is_panic());
    assert_eq!(setup.sink.only().status, 500);
    assert_eq!(setup.sink.only().code, Some("inner.panicked"));
}

/// J1: an inner service that fails without a response is reported, and its error is returned.
#[tokio::test]
async fn a_failing_service_is_reported() {
    let setup = Setup::new();
    let inner = tower::service_fn(async |_: Request<()>| Err::<Response<String>, _>("broken"));
    let mut guard = GuardLayer::new(setup.resource()).layer(inner);
    let failed = guard
        .call(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await;
    assert_eq!(failed.map(|_| ()).unwrap_err(), "broken");
    assert_eq!(setup.sink.only().status, 500);
    assert_eq!(setup.sink.only().code, Some("inner.failed"));
}
