//! A sign-out revokes and removes the tokens, and is not undone.

use portcullis_metadata::{Issuer, UnixTime};

use super::*;
use crate::testing::METADATA_URL;

/// A sign-out removes the token and revokes both tokens at the server; the registration is kept.
#[tokio::test]
async fn a_sign_out_revokes() {
    const REVOKE: &str = "https://auth.example.com/revoke";
    for (endpoint, expected) in [(true, SignOut::Revoked), (false, SignOut::ForgottenLocally)] {
        let mut fixture = Fixture::new();
        let server = fixture.server.clone();
        fixture.network = FetchFn::new(move |request| match request.url.as_str() {
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
        let token_manager = fixture.token_manager(store.clone());
        assert_eq!(
            token_manager.sign_out().await.unwrap(),
            SignOut::NotSignedIn
        );
        token_manager.sign_in().await.unwrap();
        assert_eq!(token_manager.sign_out().await.unwrap(), expected);
        assert!(text(&token_manager).await.is_none());
        assert!(store.tokens(token_manager.start_url()).unwrap().is_empty());
        assert!(store.knows(&Issuer::parse("https://auth.example.com").unwrap()));
        let revoked: Vec<_> = fixture
            .network
            .to(REVOKE)
            .iter()
            .map(|request| form(request)["token"].clone())
            .collect();
        assert_eq!(revoked, if endpoint { vec!["r1", "t1"] } else { vec![] });
    }
}

/// If the server cannot revoke tokens of a type (RFC 7009 section 2.2.1), the sign-out says so.
/// Another error fails it.
#[tokio::test]
async fn a_sign_out_returns_what_was_revoked() {
    const REVOKE: &str = "https://auth.example.com/revoke";
    for (error, token_types, expected) in [
        (
            "unsupported_token_type",
            "access_token",
            Ok(SignOut::RefreshTokenRevoked),
        ),
        (
            "unsupported_token_type",
            "access_token refresh_token",
            Ok(SignOut::ForgottenLocally),
        ),
        (
            "unsupported_token_type",
            "refresh_token",
            Ok(SignOut::ForgottenLocally),
        ),
        ("invalid_client", "access_token", Err("client.revocation")),
        ("unsupported_token_type", "", Ok(SignOut::Revoked)),
    ] {
        let mut fixture = Fixture::new();
        let server = fixture.server.clone();
        fixture.network = FetchFn::new(move |request| match request.url.as_str() {
            METADATA_URL => {
                let mut document = metadata();
                document["revocation_endpoint"] = REVOKE.into();
                Some(Reply::json(200, document))
            }
            REVOKE if token_types.contains(&form(request)["token_type_hint"]) => {
                Some(Reply::json(400, format!(r#"{{"error":"{error}"}}"#)))
            }
            REVOKE => Some(Reply::status(200)),
            TOKEN_URL => Some(server.token(request)),
            _ => well_behaved(request),
        });
        let token_manager = fixture.token_manager(CredentialStore::in_memory());
        token_manager.sign_in().await.unwrap();
        assert_eq!(
            token_manager.sign_out().await.map_err(|error| error.code()),
            expected
        );
        assert!(text(&token_manager).await.is_none());
    }
}

/// I5: a program that still holds the token does not undo another program's sign-out: it uses no
/// refresh token and stores nothing.
#[tokio::test]
async fn a_sign_out_by_another_program_is_not_undone() {
    let fixture = Fixture::new();
    let store = CredentialStore::in_memory();
    let bridge = fixture.token_manager(store.clone());
    let other = fixture.token_manager(store.clone());
    bridge.sign_in().await.unwrap();
    assert_eq!(other.sign_out().await.unwrap(), SignOut::ForgottenLocally);
    for now in [1_250, 9_000] {
        fixture.clock.set_unix(UnixTime::from_secs(now));
        let _ = text(&bridge).await;
        assert_eq!(fixture.server.counts(), (1, 0), "{now}");
        assert!(
            store.tokens(bridge.start_url()).unwrap().is_empty(),
            "{now}"
        );
    }
}
