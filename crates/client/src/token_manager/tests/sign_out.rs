//! The end of a sign-in.

use portcullis_metadata::Issuer;
use portcullis_metadata::UnixTime;

use super::*;
use crate::testing::METADATA_URL;

/// A sign-out forgets the token here and revokes both tokens there; the registration stays.
#[tokio::test]
async fn a_sign_out_revokes() {
    const REVOKE: &str = "https://auth.example.com/revoke";
    for (endpoint, outcome) in [(true, SignOut::Revoked), (false, SignOut::ForgottenLocally)] {
        let mut scene = Scene::new();
        let server = scene.server.clone();
        scene.network = FetchFn::new(move |request| match request.url.as_str() {
            METADATA_URL if endpoint => {
                let mut document = metadata();
                document["revocation_endpoint"] = REVOKE.into();
                Some(Reply::json(200, document))
            }
            REVOKE => Some(Reply::status(200)),
            TOKEN_URL => Some(server.token(request)),
            _ => well_behaved(request),
        });
        let store = CredentialStore::in_memory();
        let token_manager = scene.token_manager(store.clone());
        assert_eq!(token_manager.sign_out().await.unwrap(), SignOut::NotSignedIn);
        token_manager.sign_in().await.unwrap();
        assert_eq!(token_manager.sign_out().await.unwrap(), outcome);
        assert!(text(&token_manager).await.is_none() && store.tokens(token_manager.start_url()).unwrap().is_empty());
        assert!(store.knows(&Issuer::parse("https://auth.example.com").unwrap()));
        let revoked: Vec<_> = scene.network.to(REVOKE).iter().map(|request| form(request)["token"].clone()).collect();
        assert_eq!(revoked, if endpoint { vec!["r1", "t1"] } else { vec![] });
    }
}

/// A server that keeps no access tokens, and so revokes none (RFC 7009 section 2.2.1), does not fail a sign-out; one that
/// refuses for another reason does.
#[tokio::test]
async fn a_sign_out_tells_what_was_revoked() {
    const REVOKE: &str = "https://auth.example.com/revoke";
    for (error, kinds, outcome) in [
        ("unsupported_token_type", "access_token", Ok(SignOut::RefreshTokenRevoked)),
        ("unsupported_token_type", "access_token refresh_token", Ok(SignOut::ForgottenLocally)),
        ("invalid_client", "access_token", Err("client.revocation")),
        ("unsupported_token_type", "", Ok(SignOut::Revoked)),
    ] {
        let mut scene = Scene::new();
        let server = scene.server.clone();
        scene.network = FetchFn::new(move |request| match request.url.as_str() {
            METADATA_URL => {
                let mut document = metadata();
                document["revocation_endpoint"] = REVOKE.into();
                Some(Reply::json(200, document))
            }
            REVOKE if kinds.contains(&form(request)["token_type_hint"]) => {
                Some(Reply::json(400, format!(r#"{{"error":"{error}"}}"#)))
            }
            REVOKE => Some(Reply::status(200)),
            TOKEN_URL => Some(server.token(request)),
            _ => well_behaved(request),
        });
        let token_manager = scene.token_manager(CredentialStore::in_memory());
        token_manager.sign_in().await.unwrap();
        assert_eq!(token_manager.sign_out().await.map_err(|error| error.code()), outcome);
        assert!(text(&token_manager).await.is_none());
    }
}

/// I5: a program that still holds the token does not undo a sign-out by another program: it spends no refresh token and
/// writes nothing.
#[tokio::test]
async fn a_sign_out_by_another_program_is_not_undone() {
    let scene = Scene::new();
    let store = CredentialStore::in_memory();
    let (bridge, other) = (scene.token_manager(store.clone()), scene.token_manager(store.clone()));
    bridge.sign_in().await.unwrap();
    assert_eq!(other.sign_out().await.unwrap(), SignOut::ForgottenLocally);
    for now in [1_250, 9_000] {
        scene.clock.set_unix(UnixTime::from_secs(now));
        let _ = text(&bridge).await;
        assert_eq!(scene.server.counts(), (1, 0), "{now}");
        assert!(store.tokens(bridge.start_url()).unwrap().is_empty(), "{now}");
    }
}
