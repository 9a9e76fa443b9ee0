//! Without authentication, no token is needed, and the other checks remain.

use http::{Method, StatusCode};

use super::support::{METADATA_PATH, ROOT_PATH, Setup, With, caller, request};
use crate::Authentication;

fn off() -> Setup {
    let mut setup = Setup::new().require("read").route(&[], "/**", "admin");
    setup.settings.authentication = Authentication::Off;
    setup.settings.metadata.authorization_servers.clear();
    setup
}

/// F7: tokens and scopes are not checked, the caller has no principal, and credentials are removed.
#[tokio::test]
async fn no_token_is_needed() {
    let setup = off();
    let incoming = request(Method::POST, "/mcp")
        .bearer("anything")
        .bearer("twice")
        .with("dpop", "proof");
    assert_eq!(setup.send(incoming).await.status, StatusCode::OK);
    let seen = setup.inner.take_only();
    assert!(caller(&seen).principal().is_none());
    assert!(caller(&seen).verified().is_none());
    assert!(!seen.headers().contains_key("authorization"));
    assert!(!seen.headers().contains_key("dpop"));
    assert_eq!(
        seen.headers()["x-request-id"],
        caller(&seen).request_id().as_str()
    );
}

/// F7: no metadata is served.
#[tokio::test]
async fn there_is_no_metadata() {
    let setup = off();
    for path in [METADATA_PATH, ROOT_PATH] {
        for method in [Method::GET, Method::POST] {
            let answer = setup.send(request(method, path)).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND);
            assert_eq!(answer.header("www-authenticate"), None);
        }
    }
    assert_eq!(setup.inner.count(), 0);
}

/// F3, F9: host and origin are still checked, and a token in the query is still rejected.
#[tokio::test]
async fn the_other_checks_remain() {
    let setup = off();
    let answer = setup
        .send(request(Method::POST, "/mcp?access_token=x"))
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let mut local = Setup::at("http://localhost:3000/mcp");
    local.settings.authentication = Authentication::Off;
    assert_eq!(
        local.send(request(Method::POST, "/mcp")).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(setup.inner.count(), 0);
    assert_eq!(local.inner.count(), 0);
}
