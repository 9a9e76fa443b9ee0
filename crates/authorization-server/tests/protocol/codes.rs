//! Stolen, injected and repeated codes.

use portcullis_authorization_server::{
    ErrorCode, Store,
    token::{GrantedTokens, TokenError, exchange_code},
};
use portcullis_metadata::authorization::PkceVerifier;

use crate::support::{REDIRECT, RESOURCE, Server, client, form};

/// Exchanges a code as `id` with these parameters.
async fn exchange(
    server: &Server,
    id: &str,
    pairs: &[(&str, &str)],
) -> Result<GrantedTokens, TokenError> {
    exchange_code(server, &server.store, &client(id), &form(pairs), None).await
}

#[tokio::test]
async fn a_code_is_exchanged_once() {
    let server = Server::new();
    let verifier = PkceVerifier::generate().unwrap();
    let code = server.code(&verifier).await;
    let pairs = [
        ("code", &*code),
        ("code_verifier", verifier.secret()),
        ("redirect_uri", REDIRECT),
        ("resource", RESOURCE),
    ];
    let granted = exchange(&server, "client-a", &pairs).await.unwrap();
    assert_eq!(&*granted.grant.subject, "alice");
    assert_eq!(granted.grant.audience.as_deref(), Some(RESOURCE));
    assert_eq!(granted.scopes.to_string(), "mcp:tools");
    let refresh_token = granted.refresh_token.unwrap();
    let found = server
        .store
        .find_refresh_token(refresh_token.secret())
        .await;
    assert!(found.unwrap().is_some());

    // The second use ends the grant.
    let error = exchange(&server, "client-a", &pairs).await.unwrap_err();
    assert!(matches!(error, TokenError::Replayed(_)));
    assert_eq!(error.response().code, ErrorCode::InvalidGrant);
    let found = server
        .store
        .find_refresh_token(refresh_token.secret())
        .await;
    assert!(found.unwrap().is_none());
}

#[tokio::test]
async fn a_failed_check_neither_consumes_nor_revokes() {
    let server = Server::new();
    let verifier = PkceVerifier::generate().unwrap();
    let other = PkceVerifier::generate().unwrap();
    let code = server.code(&verifier).await;
    let right = ("code_verifier", verifier.secret());
    for (id, pair, extra, expected) in [
        // The code is stolen: the thief has no verifier.
        (
            "client-a",
            ("code_verifier", other.secret()),
            None,
            ErrorCode::InvalidGrant,
        ),
        // The code is injected into another client.
        ("client-b", right, None, ErrorCode::InvalidGrant),
        (
            "client-a",
            right,
            Some(("redirect_uri", "http://127.0.0.1:1/callback")),
            ErrorCode::InvalidGrant,
        ),
        (
            "client-a",
            right,
            Some(("resource", "https://mcp.example.com/other")),
            ErrorCode::InvalidTarget,
        ),
        // PKCE is left out.
        ("client-a", ("unused", "x"), None, ErrorCode::InvalidRequest),
    ] {
        let mut pairs = vec![("code", &*code), pair];
        pairs.extend(extra);
        let error = exchange(&server, id, &pairs).await.unwrap_err();
        assert!(matches!(error, TokenError::Rejected(_)), "{pairs:?}");
        assert_eq!(error.response().code, expected, "{pairs:?}");
    }
    let pairs = [("code", &*code), right];
    exchange(&server, "client-a", &pairs).await.unwrap();

    // A thief who replays the used code without the verifier ends nothing.
    let stolen = [("code", &*code), ("code_verifier", other.secret())];
    let error = exchange(&server, "client-a", &stolen).await.unwrap_err();
    assert!(matches!(error, TokenError::Rejected(_)));
}

#[tokio::test]
async fn an_unknown_code_is_rejected() {
    let server = Server::new();
    let verifier = PkceVerifier::generate().unwrap();
    let pairs = [("code", "guessed"), ("code_verifier", verifier.secret())];
    let error = exchange(&server, "client-a", &pairs).await.unwrap_err();
    assert_eq!(error.response().code, ErrorCode::InvalidGrant);
    let twice = [
        ("code", "a"),
        ("code", "b"),
        ("code_verifier", verifier.secret()),
    ];
    let error = exchange(&server, "client-a", &twice).await.unwrap_err();
    assert_eq!(error.response().code, ErrorCode::InvalidRequest);
}
