//! Tokens are refreshed before they expire, once for all requests and processes.

use std::time::Duration;

use portcullis_metadata::UnixTime;

use super::*;
use crate::Interaction as _;

/// I5: a token is refreshed before it expires, and the refresh token of the response is used next.
#[tokio::test]
async fn a_token_is_refreshed_before_it_expires() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    assert_eq!(text(&token_manager).await, None);
    token_manager.sign_in().await.unwrap();
    for (now, token, counts) in [
        (1_000, "t1", (1, 0)),
        (1_239, "t1", (1, 0)),
        (1_240, "t2", (2, 1)),
        (1_300, "t2", (2, 1)),
        (1_480, "t3", (3, 2)),
        // The refresh token outlives the access token.
        (9_000, "t4", (4, 3)),
    ] {
        fixture.clock.set_unix(UnixTime::from_secs(now));
        assert_eq!(text(&token_manager).await.as_deref(), Some(token), "{now}");
        assert_eq!(fixture.server.counts(), counts, "{now}");
    }
    assert_eq!(fixture.user.visits(), 1);
}

/// I5: of concurrent requests, one refreshes the token. The others use the current token, and wait
/// only if it has expired.
#[tokio::test]
async fn one_refresh_for_all_requests() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    for (now, tokens, counts) in [(1_250, ["t1", "t2"], (2, 1)), (1_700, ["t3", "t3"], (3, 2))] {
        fixture.clock.set_unix(UnixTime::from_secs(now));
        let all = (0..8).map(|_| {
            let token_manager = token_manager.clone();
            tokio::spawn(async move { text(&token_manager).await })
        });
        for one in all.collect::<Vec<_>>() {
            assert!(tokens.contains(&one.await.unwrap().unwrap().as_str()));
        }
        assert_eq!(fixture.server.counts(), counts);
    }
}

/// I5: without the client's registration, a token cannot be refreshed, and the user is asked again.
#[tokio::test]
async fn a_token_ends_with_its_client() {
    let fixture = Fixture::new();
    let store = CredentialStore::in_memory();
    let token_manager = fixture.token_manager(store.clone());
    let issuer = token_manager.sign_in().await.unwrap().issuer().clone();
    store
        .lock_client(&issuer, fixture.user.redirect_uri(), None)
        .await
        .unwrap()
        .remove()
        .unwrap();
    fixture.clock.set_unix(UnixTime::from_secs(1_400));
    assert_eq!(text(&token_manager).await, None);
    assert_eq!(
        fixture.user.ended()[0].to_string(),
        "the sign-in to https://mcp.example.com/mcp has ended: its client at https://auth.example.com is no longer stored"
    );
    let mut authorization = token_manager.request_authorization();
    assert_eq!(send(&mut authorization).await, None);
    assert!(
        authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t2"));
    assert_eq!(fixture.server.counts(), (2, 0));
    assert_eq!(fixture.user.visits(), 2);
}

/// I5, J9: the user learns once why a stored sign-in has ended, before the next one. A server that
/// is down ends none.
#[tokio::test]
async fn the_user_learns_why_a_sign_in_has_ended() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    fixture.clock.set_unix(UnixTime::from_secs(1_400));
    fixture.server.down.store(true, Ordering::Relaxed);
    assert!(token_manager.token().await.is_err());
    assert!(fixture.user.ended().is_empty());

    fixture.server.down.store(false, Ordering::Relaxed);
    *fixture.server.live.lock() = None;
    assert_eq!(text(&token_manager).await, None);
    assert_eq!(text(&token_manager).await, None);
    let ended: Vec<_> = fixture
        .user
        .ended()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        ended,
        [
            "the sign-in to https://mcp.example.com/mcp has ended: https://auth.example.com rejected the refresh of its token: \
             invalid_grant"
        ]
    );
    assert_eq!(fixture.user.visits(), 1);
}

/// I5, J9: a sign-in that waits for one of another process says so after a second, and not before.
#[tokio::test(start_paused = true)]
async fn the_user_learns_of_another_sign_in() {
    let fixture = Fixture::new();
    let store = CredentialStore::in_memory();
    let token_manager = fixture.token_manager(store.clone());
    let start = token_manager.start_url().clone();
    let other = store.lock_sign_in(&start).await.unwrap();
    let waiting = tokio::spawn({
        let token_manager = token_manager.clone();
        async move { token_manager.sign_in().await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(fixture.user.waits().is_empty());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.user.waits(), [start]);
    assert_eq!(fixture.user.visits(), 0);
    drop(other);
    waiting.await.unwrap().unwrap();
    assert_eq!(fixture.user.visits(), 1);
}

/// I5: while another task renews the token, which can wait for the user, a valid token is used
/// without waiting; an expired one is not.
#[tokio::test]
async fn a_valid_token_is_used_during_a_renewal() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    let _renewal = token_manager.renewing.lock().await;
    for (now, is_there) in [(1_250, true), (1_300, false)] {
        fixture.clock.set_unix(UnixTime::from_secs(now));
        assert_eq!(
            poll_once(text(&token_manager)).await.is_some(),
            is_there,
            "{now}"
        );
    }
}

/// I5: the result of a refresh is stored even if the request is cancelled, so that the rotated
/// token is not lost.
#[tokio::test]
async fn a_refresh_outlives_its_request() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let token_manager = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    token_manager.sign_in().await.unwrap();
    fixture.clock.set_unix(UnixTime::from_secs(1_250));
    assert!(poll_once(token_manager.token()).await.is_none());
    while fixture.server.counts() != (2, 1) {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(&token_manager).await.as_deref(), Some("t2"));

    fixture.clock.set_unix(UnixTime::from_secs(1_500));
    assert_eq!(text(&token_manager).await.as_deref(), Some("t3"));
    assert_eq!(fixture.server.counts(), (3, 2));
    assert_eq!(fixture.user.visits(), 1);
}

/// I5: of two token managers that share only the files, one refreshes the token, and the other uses
/// the newer token and does not overwrite it.
#[tokio::test]
async fn one_refresh_for_all_processes() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let first = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    first.sign_in().await.unwrap();
    let second = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    assert_eq!(text(&second).await.as_deref(), Some("t1"));

    fixture.clock.set_unix(UnixTime::from_secs(1_250));
    let (one, other) = tokio::join!(text(&first), text(&second));
    assert_eq!(one.as_deref(), Some("t2"));
    assert_eq!(other.as_deref(), Some("t2"));
    assert_eq!(fixture.server.counts(), (2, 1));

    // The next refresh uses the refresh token that the other one got.
    fixture.clock.set_unix(UnixTime::from_secs(1_500));
    assert_eq!(text(&second).await.as_deref(), Some("t3"));
    assert_eq!(text(&first).await.as_deref(), Some("t3"));
    assert_eq!(fixture.server.counts(), (3, 2));
    assert_eq!(fixture.user.visits(), 1);
}

/// I5: a failed refresh before the expiry is not an error; after the expiry it is, and the
/// credentials are kept.
#[tokio::test]
async fn an_early_refresh_can_fail() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    fixture.server.down.store(true, Ordering::Relaxed);
    fixture.clock.set_unix(UnixTime::from_secs(1_250));
    assert_eq!(text(&token_manager).await.as_deref(), Some("t1"));
    fixture.clock.set_unix(UnixTime::from_secs(1_300));
    assert_eq!(
        token_manager.token().await.unwrap_err().code(),
        "client.status"
    );
    fixture.server.down.store(false, Ordering::Relaxed);
    assert_eq!(text(&token_manager).await.as_deref(), Some("t2"));
}

/// I5: a refresh token that the server rejects is removed, and the user is asked again.
#[tokio::test]
async fn an_invalid_refresh_token_leads_to_a_new_authorization() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let token_manager = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    token_manager.sign_in().await.unwrap();
    *fixture.server.live.lock() = None;
    fixture.clock.set_unix(UnixTime::from_secs(1_400));
    assert_eq!(text(&token_manager).await, None);
    assert_eq!(fixture.server.counts(), (1, 1));

    // Another process does not try it again.
    assert_eq!(
        text(&fixture.token_manager(CredentialStore::in_directory(scratch.path()))).await,
        None
    );
    assert_eq!(fixture.server.counts(), (1, 1));
    let mut authorization = token_manager.request_authorization();
    assert_eq!(send(&mut authorization).await, None);
    assert!(
        authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t2"));
    assert_eq!(fixture.server.counts(), (2, 1));
    assert_eq!(fixture.user.visits(), 2);
    assert_eq!(
        text(&fixture.token_manager(CredentialStore::in_directory(scratch.path())))
            .await
            .as_deref(),
        Some("t2")
    );
}
