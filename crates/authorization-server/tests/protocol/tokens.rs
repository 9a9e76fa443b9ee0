//! Introspection and revocation by others.

use portcullis_authorization_server::{
    ErrorCode, IssuedToken, Store, TokenVerifier, introspect, revoke,
};
use portcullis_metadata::AccessTokenClaims;

use crate::support::{RESOURCE, Server, form};

/// Recognizes one token, of `client-a` for the resource.
struct OneToken;

impl TokenVerifier for OneToken {
    fn verify(&self, token: &str) -> Option<IssuedToken> {
        let claims = format!(r#"{{"aud":"{RESOURCE}","sub":"alice","scope":"mcp:tools"}}"#);
        (token == "issued").then(|| IssuedToken {
            id: Some("jti".into()),
            client_id: "client-a".into(),
            grant_id: Some("grant".into()),
            claims: AccessTokenClaims::parse(claims.as_bytes()).unwrap(),
        })
    }
}

async fn is_active(server: &Server, audience: Option<&str>, token: &str) -> bool {
    let form = form(&[("token", token)]);
    let response = introspect(&server.store, &OneToken, audience, &form).await;
    response.unwrap().active
}

#[tokio::test]
async fn a_resource_learns_only_about_its_own_tokens() {
    let server = Server::new();
    assert!(is_active(&server, Some(RESOURCE), "issued").await);
    assert!(is_active(&server, None, "issued").await);
    assert!(!is_active(&server, Some("https://mcp.example.com/other"), "issued").await);
    assert!(!is_active(&server, Some(RESOURCE), "guessed").await);
}

#[tokio::test]
async fn a_token_is_inactive_after_its_revocation_or_the_end_of_its_grant() {
    let server = Server::new();
    let token = form(&[("token", "issued")]);
    // Another client cannot revoke it.
    let error = revoke(&server.store, &OneToken, "client-b", &token)
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    assert!(is_active(&server, None, "issued").await);
    assert!(
        revoke(&server.store, &OneToken, "client-a", &token)
            .await
            .unwrap()
    );
    assert!(!is_active(&server, None, "issued").await);

    let server = Server::new();
    server.store.end_grant("grant").await.unwrap();
    assert!(!is_active(&server, None, "issued").await);
    // An unknown token is a success without effect.
    let unknown = form(&[("token", "guessed")]);
    assert!(
        !revoke(&server.store, &OneToken, "client-a", &unknown)
            .await
            .unwrap()
    );
}
