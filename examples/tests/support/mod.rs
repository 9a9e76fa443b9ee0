//! An issuer on a free port, and servers and calls over real sockets.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use axum::{Router, routing::get};
use portcullis_discovery::{Fetch, FetchRequest, FetchResponse, HttpFetch};
use portcullis_guard::metadata::SystemClock;
use portcullis_testkit::TestIssuer;
use tokio::net::TcpListener;

/// A free loopback port, listened on, and its base URL.
pub(crate) async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    (listener, base)
}

pub(crate) fn serve(listener: TcpListener, app: Router) {
    tokio::spawn(async move { axum::serve(listener, app).await });
}

/// An issuer that publishes its metadata and keys, and makes tokens for `resource`.
pub(crate) async fn issuer(resource: &str) -> TestIssuer {
    let (listener, base) = listener().await;
    let test_issuer = TestIssuer::new(&base)
        .with_resource(resource)
        .with_clock(SystemClock::new());
    let metadata = test_issuer.metadata_json();
    let keys = test_issuer.jwks_json();
    let json = |text: String| get(async move || ([("content-type", "application/json")], text));
    let app = Router::new().route(test_issuer.metadata_url().path(), json(metadata));
    serve(
        listener,
        app.route(test_issuer.endpoint("jwks").path(), json(keys)),
    );
    test_issuer
}

pub(crate) async fn send(mut request: FetchRequest, token: Option<&str>) -> FetchResponse {
    if let Some(token) = token {
        request
            .headers
            .insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    HttpFetch::new(Default::default())
        .unwrap()
        .fetch(request)
        .await
        .unwrap()
}

/// Asserts that the function `app` of an example has at most 15 lines.
pub(crate) fn assert_short(example: &str) {
    let lines = example
        .lines()
        .skip_while(|line| !line.contains("fn app("))
        .take_while(|line| *line != "}")
        .count()
        + 1;
    assert!((2..=15).contains(&lines), "{lines} lines");
}
