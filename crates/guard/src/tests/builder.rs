//! The builder: the defaults of `serve`, and errors that name what to correct.

use std::sync::Arc;

use http::{Method, Request, StatusCode};
use portcullis_testkit::{ScriptedFetch, TestIssuer};
use serde_json::Value;
use tower::ServiceExt;
use tower_layer::Layer;

use super::support::{Inner, METADATA_PATH, RESOURCE, With, request};
use crate::{Guard, GuardBuilder, GuardLayer, Verifier, limit::GuardLimits};

/// Returns an issuer that publishes its keys, and a builder that trusts it.
fn setup() -> (TestIssuer, GuardBuilder) {
    let issuer = TestIssuer::new("https://issuer.example").with_resource(RESOURCE);
    let fetch = ScriptedFetch::new();
    fetch.publish(&issuer);
    let issuer = issuer.with_clock(portcullis_metadata::SystemClock::new());
    let verifier = Verifier::builder(RESOURCE)
        .issuer("https://issuer.example")
        .fetch(Arc::new(fetch));
    (issuer, Guard::builder(verifier.build().unwrap()))
}

async fn status(guard: &GuardLayer, request: Request<()>) -> StatusCode {
    guard
        .layer(Inner::default())
        .oneshot(request)
        .await
        .unwrap()
        .status()
}

async fn scopes_supported(guard: &GuardLayer) -> Value {
    use http_body_util::BodyExt;
    let response = guard
        .layer(Inner::default())
        .oneshot(request(Method::GET, METADATA_PATH))
        .await
        .unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice::<Value>(&body).unwrap()["scopes_supported"].clone()
}

/// B1, B7: a guard of one line requires a token; scopes, routes and public paths are enforced.
#[tokio::test]
async fn a_guard_in_a_few_lines() {
    let (issuer, builder) = setup();
    let guard = builder.clone().build().unwrap();
    assert_eq!(
        status(&guard, request(Method::GET, "/")).await,
        StatusCode::UNAUTHORIZED
    );
    let token = |scope: &str| issuer.token().scope(scope).sign();
    assert_eq!(
        status(&guard, request(Method::GET, "/").bearer(&token("x"))).await,
        StatusCode::OK
    );

    let builder =
        builder
            .required_scopes("read list")
            .route([Method::POST], "/reports/**", "write");
    let guard = builder.public_path("/healthz").build().unwrap();
    for (method, path, scope, expected) in [
        (Method::GET, "/reports", "read", StatusCode::FORBIDDEN),
        (Method::GET, "/reports", "read list", StatusCode::OK),
        (
            Method::POST,
            "/reports/1",
            "read list",
            StatusCode::FORBIDDEN,
        ),
        (
            Method::POST,
            "/reports/1",
            "read list write",
            StatusCode::OK,
        ),
    ] {
        let request = request(method, path).bearer(&token(scope));
        assert_eq!(status(&guard, request).await, expected, "{path} {scope}");
    }
    assert_eq!(
        status(&guard, request(Method::GET, "/healthz")).await,
        StatusCode::OK
    );
}

/// A2: the metadata lists the required scopes unless other ones are set.
#[tokio::test]
async fn required_scopes_are_the_supported_ones() {
    let (_, builder) = setup();
    assert_eq!(
        scopes_supported(&builder.clone().build().unwrap()).await,
        Value::Null
    );
    let builder = builder.required_scopes("read list");
    assert_eq!(
        scopes_supported(&builder.clone().build().unwrap()).await,
        serde_json::json!(["list", "read"])
    );
    let builder = builder.scopes_supported("read write list");
    assert_eq!(
        scopes_supported(&builder.build().unwrap()).await,
        serde_json::json!(["list", "read", "write"])
    );
}

/// L9: requests in progress are limited by default, and the limit can be removed.
#[tokio::test]
async fn requests_in_progress_are_limited_by_default() {
    let (_, builder) = setup();
    let limit = |builder: GuardBuilder| {
        builder
            .build()
            .unwrap()
            .resource()
            .limits
            .in_flight
            .is_some()
    };
    assert!(limit(builder.clone()));
    assert!(!limit(builder.limits(GuardLimits::default())));
}

/// The first error is returned by `build`, and names the argument or setting to correct.
#[tokio::test]
async fn errors_name_what_to_correct() {
    let (_, builder) = setup();
    for (broken, code, text) in [
        (
            builder.clone().required_scopes("a\"b").realm("x"),
            "scope.invalid_name",
            "required_scopes(\"a\\\"b\"): ",
        ),
        (
            builder.clone().scopes_supported("\u{e9}"),
            "scope.invalid_name",
            "scopes_supported(",
        ),
        (
            builder.clone().route([], "reports", "x"),
            "settings.route_path",
            "route(\"reports\"): ",
        ),
        (
            builder.clone().allow_host("*"),
            "settings.allowed_hosts",
            "`*`",
        ),
        (
            builder.clone().allow_origin("null"),
            "settings.allowed_origins",
            "`null`",
        ),
        (
            builder.clone().public_path("/public/*"),
            "settings.public_path",
            "`/public/*`",
        ),
        (builder.clone().realm("\u{e9}"), "settings.realm", "realm"),
        (
            builder.clone().required_scopes("offline_access"),
            "settings.offline_access",
            "required_scopes",
        ),
    ] {
        let error = broken.build().unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(text), "{error}");
    }
}
