//! Refresh races, replays and refreshes by others.

use std::time::Duration;

use portcullis_authorization_server::{
    AuthorizationCode, ErrorCode, Grant, Store,
    authorization::User,
    token::{GrantedTokens, RefreshCheck, TokenError, exchange_code, refresh},
};
use portcullis_metadata::{UnixTime, authorization::PkceVerifier};

use crate::{
    store::REUSE,
    support::{Server, client, form},
};

/// Returns the first tokens of a new grant.
async fn sign_in(server: &Server) -> GrantedTokens {
    let verifier = PkceVerifier::generate().unwrap();
    let code = server.code(&verifier).await;
    let form = form(&[("code", &code), ("code_verifier", verifier.secret())]);
    exchange_code(server, &server.store, &client("client-a"), &form, None)
        .await
        .unwrap()
}

/// Refreshes as `client-a`, with further parameters.
async fn send(
    server: &Server,
    token: &str,
    further: &[(&str, &str)],
) -> Result<GrantedTokens, TokenError> {
    let pairs = [&[("refresh_token", token)], further].concat();
    refresh(
        server,
        &server.store,
        &client("client-a"),
        &form(&pairs),
        None,
    )
    .await
}

fn secret(granted: &GrantedTokens) -> String {
    granted.refresh_token.as_ref().unwrap().secret().to_owned()
}

/// As seen in the field: five uses in a second, and a sixth after 7 minutes and 45 seconds.
#[tokio::test]
async fn repeated_refreshes_get_the_same_successor() {
    let server = Server::new();
    let first = sign_in(&server).await;
    let token = secret(&first);
    let successor = secret(&send(&server, &token, &[]).await.unwrap());
    for _ in 0..4 {
        assert_eq!(
            secret(&send(&server, &token, &[]).await.unwrap()),
            successor
        );
    }
    server.store.advance(Duration::from_secs(465));
    assert_eq!(
        secret(&send(&server, &token, &[]).await.unwrap()),
        successor
    );
    // There is one line of tokens, also after the successor was used.
    let next = secret(&send(&server, &successor, &[]).await.unwrap());
    assert_eq!(
        secret(&send(&server, &token, &[]).await.unwrap()),
        successor
    );
    assert_eq!(secret(&send(&server, &successor, &[]).await.unwrap()), next);
    assert_eq!(server.store.issued(&first.grant.id), 3);
}

#[tokio::test]
async fn a_late_replay_ends_the_grant() {
    let server = Server::new();
    let token = secret(&sign_in(&server).await);
    let successor = secret(&send(&server, &token, &[]).await.unwrap());
    server.store.advance(REUSE + Duration::from_secs(1));
    let error = send(&server, &token, &[]).await.unwrap_err();
    assert!(matches!(error, TokenError::Replayed(_)));
    assert_eq!(error.response().code, ErrorCode::InvalidGrant);
    // The successor, which the thief or the owner has, is worthless now.
    let error = send(&server, &successor, &[]).await.unwrap_err();
    assert!(matches!(error, TokenError::Rejected(_)));
    assert_eq!(error.response().code, ErrorCode::InvalidGrant);
}

#[tokio::test]
async fn a_failed_check_does_not_rotate() {
    let server = Server::new();
    let first = sign_in(&server).await;
    let token = secret(&first);
    let others = form(&[("refresh_token", &token)]);
    let error = refresh(&server, &server.store, &client("client-b"), &others, None)
        .await
        .unwrap_err();
    assert_eq!(error.response().code, ErrorCode::InvalidGrant);
    for (pair, expected) in [
        (
            ("resource", "https://mcp.example.com/other"),
            ErrorCode::InvalidTarget,
        ),
        (("scope", "mcp:tools mcp:admin"), ErrorCode::InvalidScope),
        (("scope", "\u{1}"), ErrorCode::InvalidScope),
    ] {
        let error = send(&server, &token, &[pair]).await.unwrap_err();
        assert_eq!(error.response().code, expected, "{pair:?}");
    }
    assert_eq!(server.store.issued(&first.grant.id), 1);
    send(&server, &token, &[]).await.unwrap();
}

#[tokio::test]
async fn a_token_with_fewer_scopes_leaves_the_grant_as_it_is() {
    let server = Server::new();
    let verifier = PkceVerifier::generate().unwrap();
    let request = server.request(&verifier, "mcp:tools mcp:admin").await;
    let user = User {
        subject: "alice".into(),
        auth_time: UnixTime::from_secs(0),
    };
    let grant = Grant::new(&request, user).unwrap();
    let code = AuthorizationCode::new(&request, grant, true);
    let code = server.store.issue_code(code).await.unwrap();
    let exchange = form(&[
        ("code", code.secret()),
        ("code_verifier", verifier.secret()),
    ]);
    let granted = exchange_code(&server, &server.store, &client("client-a"), &exchange, None)
        .await
        .unwrap();
    let narrow = send(&server, &secret(&granted), &[("scope", "mcp:tools")])
        .await
        .unwrap();
    assert_eq!(narrow.scopes.to_string(), "mcp:tools");
    let full = send(&server, &secret(&narrow), &[]).await.unwrap();
    assert_eq!(full.scopes, granted.scopes);
}

/// A server asks the provider about the user between the check and the rotation.
#[tokio::test]
async fn a_refresh_can_be_checked_before_anything_changes() {
    let server = Server::new();
    let granted = sign_in(&server).await;
    let token = secret(&granted);
    for (id, further, expected) in [
        ("client-a", None, None),
        ("client-a", Some(("scope", "mcp:tools")), None),
        ("client-b", None, Some(ErrorCode::InvalidGrant)),
        (
            "client-a",
            Some(("scope", "mcp:admin")),
            Some(ErrorCode::InvalidScope),
        ),
        (
            "client-a",
            Some(("resource", "https://attacker.example/")),
            Some(ErrorCode::InvalidTarget),
        ),
    ] {
        let client = client(id);
        let pairs: Vec<_> = [("refresh_token", &*token)]
            .into_iter()
            .chain(further)
            .collect();
        let form = form(&pairs);
        let check = RefreshCheck::new(&server, &client, &form, None).unwrap();
        let grant = server
            .store
            .find_refresh_token(check.token())
            .await
            .unwrap();
        let code = check.check(&grant.unwrap()).err().map(|error| error.code);
        assert_eq!(code, expected, "{id} {further:?}");
        // `refresh` decides alike.
        if expected.is_some() {
            let refreshed = refresh(&server, &server.store, &client, &form, None).await;
            let code = refreshed.err().map(|error| error.response().code);
            assert_eq!(code, expected, "{id} {further:?}");
        }
    }
    assert_eq!(
        server.store.issued(&granted.grant.id),
        1,
        "nothing was rotated"
    );

    let client = client("client-a");
    let without_token = form(&[]);
    let error = RefreshCheck::new(&server, &client, &without_token, None).err();
    assert_eq!(
        error.map(|error| error.code),
        Some(ErrorCode::InvalidRequest)
    );
}
