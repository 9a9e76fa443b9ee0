//! Requests are the same after the user answered, also on another replica.

use http::HeaderMap;
use portcullis_authorization_server::{
    AuthorizationCode, ErrorCode, Grant, Params, RefreshRequest, Store,
    authorization::{AuthorizationRequest, StoredRequest, StoredRequestError, User},
    token::exchange_code,
};
use portcullis_metadata::{UnixTime, authorization::PkceVerifier};
use serde_json::{Value, json};

use crate::support::{REDIRECT, RESOURCE, Server, client, form};

async fn request(server: &Server, verifier: &PkceVerifier) -> AuthorizationRequest {
    let query = format!(
        "client_id=client-a&redirect_uri={REDIRECT}&response_type=code&state=xyz&scope=mcp:tools\
         &resource={RESOURCE}&code_challenge_method=S256&code_challenge={}&login_hint=victim\
         &dpop_jkt={}",
        verifier.challenge().as_str(),
        "k".repeat(43),
    );
    let params = Params::parse(query.as_bytes());
    AuthorizationRequest::parse(server, server, &params, &HeaderMap::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_stored_request_is_the_same_except_for_the_login_hint() {
    let (server, verifier) = (Server::new(), PkceVerifier::generate().unwrap());
    let request = request(&server, &verifier).await;
    assert_eq!(request.login_hint.as_deref(), Some("victim"));
    let stored = StoredRequest::new(&request);
    let text = serde_json::to_string(&stored).unwrap();
    assert!(!text.contains("victim"), "{text}");
    let read: StoredRequest = serde_json::from_str(&text).unwrap();
    assert_eq!(read, stored);

    let restored = read.restore().unwrap();
    assert_eq!(StoredRequest::new(&restored), stored);
    assert_eq!(restored.client_id, request.client_id);
    assert_eq!(restored.client.name, request.client.name);
    assert_eq!(restored.redirect, request.redirect);
    assert_eq!(restored.state, request.state);
    assert_eq!(restored.challenge, request.challenge);
    assert_eq!(restored.scopes, request.scopes);
    assert_eq!(restored.audience, request.audience);
    assert_eq!(restored.refresh, RefreshRequest::Yes);
    assert_eq!(restored.key, request.key);
    assert_eq!(restored.login_hint, None);
    let location =
        |request: &AuthorizationRequest| request.code_location("c", None, Some(&server.issuer));
    assert_eq!(location(&restored), location(&request));
}

#[tokio::test]
async fn a_code_for_a_restored_request_is_bound_as_the_request_was() {
    let (server, verifier) = (Server::new(), PkceVerifier::generate().unwrap());
    let mut request = server.request(&verifier, "mcp:tools").await;
    request = StoredRequest::new(&request).restore().unwrap();
    let user = User {
        subject: "alice".into(),
        auth_time: UnixTime::from_secs(1_000),
    };
    let grant = Grant::new(&request, user).unwrap();
    let code = AuthorizationCode::new(&request, grant, true);
    let code = server.store.issue_code(code).await.unwrap();
    let form = form(&[
        ("code", code.secret()),
        ("code_verifier", verifier.secret()),
        ("redirect_uri", REDIRECT),
    ]);
    let other = exchange_code(&server, &server.store, &client("client-b"), &form, None).await;
    assert_eq!(other.unwrap_err().response().code, ErrorCode::InvalidGrant);
    let granted = exchange_code(&server, &server.store, &client("client-a"), &form, None).await;
    assert_eq!(granted.unwrap().grant.audience.as_deref(), Some(RESOURCE));
}

#[tokio::test]
async fn damaged_requests_are_errors() {
    let (server, verifier) = (Server::new(), PkceVerifier::generate().unwrap());
    let stored = StoredRequest::new(&request(&server, &verifier).await);
    let valid = serde_json::to_value(&stored).unwrap();
    for (member, value, error) in [
        (
            "redirect_uri",
            json!("javascript:x"),
            StoredRequestError::RedirectUri,
        ),
        ("challenge", json!("short"), StoredRequestError::Challenge),
        ("scopes", json!("\u{1}"), StoredRequestError::Scopes),
    ] {
        let mut damaged = valid.clone();
        damaged[member] = value;
        let stored: StoredRequest = serde_json::from_value(damaged).unwrap();
        assert_eq!(stored.restore().err(), Some(error), "{member}");
    }
    for member in [
        "client_id",
        "redirect_uri",
        "challenge",
        "scopes",
        "refresh",
    ] {
        let mut damaged = valid.clone();
        damaged[member] = Value::Null;
        assert!(
            serde_json::from_value::<StoredRequest>(damaged).is_err(),
            "{member}"
        );
    }
}
