//! Paths that need no token.

use http::{Method, StatusCode};

use super::support::{Setup, With, caller, request};
use crate::GuardSettingsError;

fn open(path: &str) -> Setup {
    let mut setup = Setup::new().require("read").route(&[], "/**", "admin");
    setup.settings.public_paths.push(path.to_owned());
    setup
}

/// B1: a public path needs no token. Credentials are removed, and the caller has no principal.
#[tokio::test]
async fn a_public_path_needs_no_token() {
    let setup = open("/healthz");
    let good = setup.token("read admin");
    for sent in [
        request(Method::GET, "/healthz?verbose"),
        request(Method::POST, "/healthz").bearer(&good),
    ] {
        assert_eq!(setup.send(sent).await.status, StatusCode::OK);
        let seen = setup.inner.take_only();
        assert!(caller(&seen).principal().is_none());
        assert!(!seen.headers().contains_key("authorization"));
    }
}

/// B1: no other spelling of a public path is open.
#[tokio::test]
async fn other_spellings_are_not_public() {
    let setup = open("/healthz");
    for path in [
        "/",
        "/healthz/",
        "/healthz/x",
        "//healthz",
        "/Healthz",
        "/%68ealthz",
        "/x/../healthz",
        "/healthz;x",
        "/health",
    ] {
        assert_eq!(
            setup.send(request(Method::GET, path)).await.status,
            StatusCode::UNAUTHORIZED,
            "{path}"
        );
    }
    assert_eq!(setup.inner.count(), 0);
}

/// F3, F9: the host is checked and a token in the query is rejected on public paths too.
#[tokio::test]
async fn the_other_checks_apply_to_public_paths() {
    let mut setup = open("/healthz");
    assert_eq!(
        setup
            .send(request(Method::GET, "/healthz?access_token=x"))
            .await
            .status,
        StatusCode::BAD_REQUEST
    );
    setup.settings.origins = setup
        .settings
        .origins
        .clone()
        .allow_host("other.example")
        .unwrap();
    let foreign = http::Request::get("/healthz")
        .header("host", "evil.example")
        .body(())
        .unwrap();
    assert_eq!(setup.send(foreign).await.status, StatusCode::FORBIDDEN);
    assert_eq!(setup.inner.count(), 0);
}

#[tokio::test]
async fn patterns_are_rejected() {
    for path in [
        "",
        "healthz",
        "/public/*",
        "/a?b",
        "/a#b",
        "/a b",
        "/\u{e9}",
    ] {
        let error = open(path).rejected();
        assert_eq!(error, GuardSettingsError::PublicPath(path.to_owned()));
        assert_eq!(error.code(), "settings.public_path");
    }
}
