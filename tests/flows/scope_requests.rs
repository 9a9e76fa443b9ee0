//! Scopes that a client lacks: requested with the refresh token, or with a new registration that
//! the user accepts.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderValue, StatusCode, header};
use portcullis_scenarios::{Peer, PeerRequest, PeerResponse, Portcullis, Scratch};
use serde_json::json;

use crate::connect::Bridge;

/// I5, I6: `token --scope` requests scopes of the login with the refresh token, refuses others with
/// the command that helps, and never asks the user.
#[tokio::test]
async fn a_token_with_scopes() {
    let peer = Peer::start(|request| {
        (request.path == "/token").then(|| {
            let form = request.form();
            let is_refresh = form["grant_type"] == "refresh_token";
            let scope = if is_refresh { form.get("scope").map_or("a", String::as_str) } else { "a" };
            request.json(json!({
                "access_token": if is_refresh { "refreshed" } else { "first" }, "token_type": "Bearer", "expires_in": 300,
                "refresh_token": "the-refresh", "scope": scope,
            }))
        })
    })
    .await;
    let url = peer.url("/mcp");
    let store = Scratch::path_for("store");
    let login = [
        "login",
        &url,
        "--auto-consent",
        "--scope",
        "a b",
        "--store",
        store.as_str(),
    ];
    let login = Portcullis::run(&login).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(login.stderr.contains("not granted: b"), "{login:?}");

    let token = async |scope: &str| {
        Portcullis::run(&["token", &url, "--scope", scope, "--store", store.as_str()]).await
    };
    assert_eq!(token("a").await.stdout.trim(), "first");
    let refused = token("a c").await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.stdout, "", "{refused:?}");
    assert!(refused.stderr.contains("lacks the scopes c"), "{refused:?}");
    assert!(refused.stderr.contains("portcullis login"), "{refused:?}");
    assert_eq!(peer.requests("/token").len(), 1);
    assert_eq!(token("b").await.stdout.trim(), "refreshed");
    assert_eq!(peer.requests("/token")[1].form()["scope"], "a b");
    assert_eq!(token("a b").await.stdout.trim(), "refreshed");
    assert_eq!(peer.requests("/token").len(), 2);
    assert_eq!(peer.requests("/authorize").len(), 1);
}

/// I6: `token --scope` accepts a grant in the form `api://ID/NAME`.
#[tokio::test]
async fn a_token_with_the_long_form_of_a_scope() {
    let peer = Peer::start(|request| {
        (request.path == "/token").then(|| {
            request.json(json!({
                "access_token": "first", "token_type": "Bearer", "expires_in": 300, "scope": "api://1/read",
            }))
        })
    })
    .await;
    let url = peer.url("/mcp");
    let store = Scratch::path_for("store");
    let login = [
        "login",
        &url,
        "--auto-consent",
        "--scope",
        "api://1/read",
        "--store",
        store.as_str(),
    ];
    let login = Portcullis::run(&login).await;
    assert_eq!(login.code, Some(0), "{login:?}");

    for scope in ["read", "api://1/read"] {
        let token =
            Portcullis::run(&["token", &url, "--scope", scope, "--store", store.as_str()]).await;
        assert_eq!(token.code, Some(0), "{token:?}");
        assert_eq!(token.stdout.trim(), "first", "{token:?}");
    }
    let refused = Portcullis::run(&[
        "token",
        &url,
        "--scope",
        "read write",
        "--store",
        store.as_str(),
    ])
    .await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("lacks the scopes write"),
        "{refused:?}"
    );
}

/// I6, H2: if a registration lacks the scopes of a step-up and cannot be updated, `connect` names
/// the scopes and the command that registers again, and only that request fails. The running bridge
/// uses the token of that command.
#[tokio::test]
async fn a_step_up_that_needs_a_new_registration() {
    let registrations = AtomicUsize::new(0);
    let peer = Peer::start(move |request| script(request, &registrations)).await;
    let url = peer.url("/mcp");
    let store = Scratch::path_for("store");
    let mut bridge = Bridge::start(&url, &["--device", "--store", store.as_str()], &[]);
    assert!(bridge.initialize().await["result"].is_object());

    for id in 1..=2 {
        let refused = bridge
            .request(
                id,
                "tools/call",
                json!({ "name": "admin", "arguments": {} }),
            )
            .await;
        let error = refused["error"].to_string();
        let command = format!("portcullis login --fresh --scope 'mcp:admin mcp:tools' {url}");
        assert!(error.contains("insufficient_scope"), "{error}");
        assert!(error.contains(&command), "{error}");
    }
    assert_eq!(peer.requests("/register").len(), 1);

    let login = [
        "login",
        &url,
        "--fresh",
        "--device",
        "--scope",
        "mcp:admin mcp:tools",
        "--store",
        store.as_str(),
    ];
    assert_eq!(Portcullis::run(&login).await.code, Some(0));
    let served = bridge
        .request(3, "tools/call", json!({ "name": "admin", "arguments": {} }))
        .await;
    assert!(served["result"].is_object(), "{served}");
    assert_eq!(peer.requests("/register").len(), 2);

    assert_eq!(bridge.close().await.code, Some(0));
}

/// A device flow, in which each registration gets a token of its own. Only the second one may call
/// tools.
fn script(request: &PeerRequest, registrations: &AtomicUsize) -> Option<PeerResponse> {
    let base = &request.base;
    if request.is_for_server_metadata() {
        let mut metadata = request.server_metadata();
        metadata["device_authorization_endpoint"] = json!(format!("{base}/device_authorization"));
        return Some(request.json(metadata));
    }
    if request.is_for_resource_metadata("/mcp") {
        let mut metadata = request.resource_metadata(&format!("{base}/mcp"));
        metadata["scopes_supported"] = json!(["mcp:tools"]);
        return Some(request.json(metadata));
    }
    match request.path.as_str() {
        "/register" => {
            let number = registrations.fetch_add(1, Ordering::Relaxed) + 1;
            let redirect_uris = request.message()["redirect_uris"].clone();
            Some(request.json(json!({ "client_id": format!("client-{number}"), "redirect_uris": redirect_uris })))
        }
        "/device_authorization" => Some(request.json(json!({
            "device_code": request.form()["client_id"], "user_code": "BCDF-GHJK",
            "verification_uri": format!("{base}/device"), "expires_in": 60, "interval": 1,
        }))),
        "/token" => Some(request.json(json!({
            "access_token": format!("token-of-{}", request.form()["client_id"]), "token_type": "Bearer", "expires_in": 300,
        }))),
        "/mcp" if request.message()["method"] == "tools/call" => {
            (request.authorization.as_deref() == Some("Bearer token-of-client-1")).then(|| {
                let mut answer = request.json("");
                *answer.status_mut() = StatusCode::FORBIDDEN;
                let challenge = "Bearer error=\"insufficient_scope\", scope=\"mcp:tools mcp:admin\"";
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
                answer
            })
        }
        _ => None,
    }
}
