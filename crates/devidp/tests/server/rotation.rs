//! Signing keys that are replaced while the server runs.

use std::time::Duration;

use portcullis_devidp::{ClientSettings, OldKeys};
use portcullis_jose::{Algorithm, AlgorithmSet, Compact, KeySet};
use portcullis_metadata::{JwkSet, Secret};

use crate::support::*;

async fn published(server: &Server) -> KeySet {
    let jwks = JwkSet::parse(server.get("/jwks").await.body.as_bytes()).unwrap();
    KeySet::from_jwks(&jwks, AlgorithmSet::from_iter([Algorithm::Rs256, Algorithm::Es256])).unwrap().0
}

async fn verifies(server: &Server, token: &str) -> bool {
    published(server).await.verify(&Compact::parse(token, 16 * 1024).unwrap()).is_ok()
}

async fn token(server: &Server) -> String {
    let (client, verifier) = (server.register().await, verifier());
    let code = server.code(&client, &verifier).await;
    server.token(&exchange(&client, &code, &verifier)).await.text("access_token")
}

async fn is_active(server: &Server, token: &str) -> bool {
    let form = encoded(&[("token", token), ("client_id", "resource"), ("client_secret", "hush")]);
    server.send(http::Method::POST, "/introspect", &[FORM], &form).await.json()["active"] == true
}

/// K1: after a rotation new tokens have new keys, and the old ones verify for as long as their tokens live.
#[tokio::test]
async fn old_keys_stay_published_while_their_tokens_live() {
    let server = Server::granting().await;
    let old = token(&server).await;
    server.control.rotate_keys(OldKeys::Keep).await.unwrap();
    let new = token(&server).await;
    assert_eq!(published(&server).await.len(), 4);
    assert!(verifies(&server, &old).await && verifies(&server, &new).await);
    let kid = |token: &str| Compact::parse(token, 16 * 1024).unwrap().header().kid().unwrap().to_owned();
    assert_ne!(kid(&old), kid(&new));
    server.clock.advance(Duration::from_secs(299));
    assert!(verifies(&server, &old).await);
    server.clock.advance(Duration::from_secs(1));
    assert!(!verifies(&server, &old).await && verifies(&server, &new).await);
    assert_eq!(published(&server).await.len(), 2);
}

/// K1: keys that are withdrawn verify nothing from then on, those of earlier rotations neither.
#[tokio::test]
async fn withdrawn_keys_are_gone_at_once() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        let resource = ClientSettings::with_secret("resource", Secret::new("hush"));
        settings.clients = vec![ClientSettings { may_introspect: true, ..resource }];
    })
    .await;
    let first = token(&server).await;
    server.control.rotate_keys(OldKeys::Keep).await.unwrap();
    let second = token(&server).await;
    assert!(is_active(&server, &first).await && is_active(&server, &second).await);
    server.control.rotate_keys(OldKeys::Withdraw).await.unwrap();
    for old in [&first, &second] {
        assert!(!verifies(&server, old).await && !is_active(&server, old).await);
    }
    let third = token(&server).await;
    assert!(verifies(&server, &third).await && is_active(&server, &third).await);
    assert_eq!(published(&server).await.len(), 2);
}

/// However often keys are rotated, the published set has a bound.
#[tokio::test]
async fn the_published_set_has_a_bound() {
    let server = Server::granting().await;
    for _ in 0..10 {
        server.control.rotate_keys(OldKeys::Keep).await.unwrap();
    }
    assert_eq!(published(&server).await.len(), 18);
    assert!(verifies(&server, &token(&server).await).await);
}
