//! A store that cannot be written: no refresh token is used, and tokens stay in memory.

use std::io::ErrorKind;

use portcullis_metadata::UnixTime;

use super::*;

/// I5: a refresh token is not used while its successor cannot be stored. The access token is used
/// until it expires. Then the error names the store, and no sign-in starts.
#[tokio::test]
async fn a_refresh_token_is_not_used_without_a_writable_store() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    let token_manager = fixture.token_manager(store.clone());
    token_manager.sign_in().await.unwrap();
    store.refuse_writes(Some(ErrorKind::StorageFull));
    fixture.clock.set_unix(UnixTime::from_secs(1_250));
    assert_eq!(text(&token_manager).await.as_deref(), Some("t1"));

    fixture.clock.set_unix(UnixTime::from_secs(1_400));
    let error = token_manager.token().await.unwrap_err();
    assert_eq!(error.code(), "store.not_writable");
    assert_eq!(fixture.server.counts(), (1, 0));
    assert_eq!(fixture.user.visits(), 1);

    store.refuse_writes(None);
    assert_eq!(text(&token_manager).await.as_deref(), Some("t2"));
    let other = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    assert_eq!(text(&other).await.as_deref(), Some("t2"));
    assert_eq!(fixture.server.counts(), (2, 1));
    assert_eq!(fixture.user.visits(), 1);
}

/// I5: if the write fails after the refresh, the token is used and refreshed from memory.
#[tokio::test]
async fn a_token_that_cannot_be_written_is_used_from_memory() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());

    // The disk is full from the refresh request on.
    let server = fixture.server.clone();
    let full = store.clone();
    let network = FetchFn::new(move |request| match request.url.as_str() {
        TOKEN_URL => {
            let is_refresh = form(request)["grant_type"] == "refresh_token";
            full.refuse_writes(is_refresh.then_some(ErrorKind::StorageFull));
            Some(server.token(request))
        }
        _ => well_behaved(request),
    });
    let settings = AuthorizerSettings {
        store: store.clone(),
        ..AuthorizerSettings::default()
    };
    let authorizer = Authorizer::builder(fixture.user.clone())
        .fetch(network)
        .clock(fixture.clock.clone())
        .settings(settings)
        .build()
        .unwrap();
    let token_manager = TokenManager::new(StartUrl::parse(RESOURCE).unwrap(), Arc::new(authorizer));
    token_manager.sign_in().await.unwrap();
    for (now, token, counts) in [
        (1_400, "t2", (2, 1)),
        (1_450, "t2", (2, 1)),
        (1_900, "t3", (3, 2)),
    ] {
        fixture.clock.set_unix(UnixTime::from_secs(now));
        assert_eq!(text(&token_manager).await.as_deref(), Some(token), "{now}");
        assert_eq!(fixture.server.counts(), counts, "{now}");
    }
    assert_eq!(fixture.user.visits(), 1);
    assert_eq!(store.write_failure().unwrap().code(), "store.not_writable");

    // The unsaved token is written before the next refresh.
    store.refuse_writes(None);
    fixture.clock.set_unix(UnixTime::from_secs(2_400));
    let before = fixture.server.counts();
    assert_eq!(
        text(&fixture.token_manager(store)).await.as_deref(),
        Some("t4")
    );
    assert_eq!(fixture.server.counts(), (before.0 + 1, before.1 + 1));

    let other = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    assert_eq!(text(&other).await.as_deref(), Some("t4"));
}

/// I5, I7: without a writable store, a sign-in lasts as long as the process.
#[tokio::test]
async fn a_sign_in_without_a_writable_store() {
    let fixture = Fixture::new();
    let token_manager =
        fixture.token_manager(CredentialStore::in_directory("/proc/portcullis/store"));
    token_manager.sign_in().await.unwrap();
    for (now, token) in [(1_000, "t1"), (1_400, "t2"), (1_800, "t3")] {
        fixture.clock.set_unix(UnixTime::from_secs(now));
        assert_eq!(text(&token_manager).await.as_deref(), Some(token), "{now}");
    }
    assert_eq!(fixture.user.visits(), 1);
}
