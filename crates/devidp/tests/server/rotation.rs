//! Rotated keys stay published until their tokens expire, within a limit.

use std::time::Duration;

use portcullis_devidp::{ClientSettings, OldKeys};
use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::{JwkSet, Secret};

use crate::support::*;

async fn published(server: &Server) -> KeySet {
    let jwks = JwkSet::parse(server.get("/jwks").await.body.as_bytes()).unwrap();
    KeySet::from_jwks(
        &jwks,
        AlgorithmSet::from_iter([Algorithm::Rs256, Algorithm::Es256]),
    )
    .unwrap()
    .0
}

async fn verifies(server: &Server, token: &str) -> bool {
    published(server)
        .await
        .verify(&CompactJws::parse(token, 16 * 1024).unwrap())
        .is_ok()
}

async fn token(server: &Server) -> String {
    let client = server.register().await;
    let verifier = verifier();
    let code = server.code(&client, &verifier).await;
    server
        .token(&token_request(&client, &code, &verifier))
        .await
        .text("access_token")
}

async fn is_active(server: &Server, token: &str) -> bool {
    let form = encoded(&[
        ("token", token),
        ("client_id", "resource"),
        ("client_secret", "hush"),
    ]);
    server
        .send(http::Method::POST, "/introspect", &[FORM], &form)
        .await
        .json()["active"]
        == true
}

/// K1: after a rotation new tokens use new keys, and the old keys stay published until their tokens
/// expire.
#[tokio::test]
async fn old_keys_stay_published_until_their_tokens_expire() {
    let server = Server::with_auto_consent().await;
    let old = token(&server).await;
    server.control.rotate_keys(OldKeys::Keep).await.unwrap();
    let new = token(&server).await;
    assert_eq!(published(&server).await.len(), 4);
    assert!(verifies(&server, &old).await);
    assert!(verifies(&server, &new).await);

    let kid = |token: &str| {
        CompactJws::parse(token, 16 * 1024)
            .unwrap()
            .header()
            .kid()
            .unwrap()
            .to_owned()
    };
    assert_ne!(kid(&old), kid(&new));
    server.clock.advance(Duration::from_secs(299));
    assert!(verifies(&server, &old).await);

    server.clock.advance(Duration::from_secs(1));
    assert!(!verifies(&server, &old).await);
    assert!(verifies(&server, &new).await);
    assert_eq!(published(&server).await.len(), 2);
}

/// Old keys stay published for 5 min, the lifetime of identity assertions, even if access tokens
/// expire earlier.
#[tokio::test]
async fn old_keys_stay_published_for_identity_assertions() {
    let server =
        Server::start(|settings| settings.access_token_lifetime = Duration::from_secs(1)).await;
    server.control.rotate_keys(OldKeys::Keep).await.unwrap();
    server.clock.advance(Duration::from_secs(299));
    assert_eq!(published(&server).await.len(), 4);
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(published(&server).await.len(), 2);
}

/// K1: withdrawn keys and all older keys no longer verify tokens.
#[tokio::test]
async fn withdrawn_keys_are_removed_immediately() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        let resource = ClientSettings::with_secret("resource", Secret::new("hush"));
        settings.clients = vec![ClientSettings {
            may_introspect: true,
            ..resource
        }];
    })
    .await;
    let first = token(&server).await;
    server.control.rotate_keys(OldKeys::Keep).await.unwrap();
    let second = token(&server).await;
    assert!(is_active(&server, &first).await);
    assert!(is_active(&server, &second).await);

    server.control.rotate_keys(OldKeys::Withdraw).await.unwrap();
    for old in [&first, &second] {
        assert!(!verifies(&server, old).await);
        assert!(!is_active(&server, old).await);
    }
    let third = token(&server).await;
    assert!(verifies(&server, &third).await);
    assert!(is_active(&server, &third).await);
    assert_eq!(published(&server).await.len(), 2);
}

/// The number of published keys is limited, even after many rotations.
#[tokio::test]
async fn the_published_set_is_bounded() {
    let server = Server::with_auto_consent().await;
    for _ in 0..10 {
        server.control.rotate_keys(OldKeys::Keep).await.unwrap();
    }
    assert_eq!(published(&server).await.len(), 18);
    assert!(verifies(&server, &token(&server).await).await);
}
