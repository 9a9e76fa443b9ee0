//! Tokens that end, and those that take their place.

use super::*;
use crate::Interaction as _;
use portcullis_metadata::UnixTime;

/// I5: a token is refreshed ahead of its end, and the refresh token that came with it is the next one to use.
#[tokio::test]
async fn a_token_is_refreshed_ahead() {
    let scene = Scene::new();
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    assert_eq!(text(&token_manager).await, None);
    token_manager.sign_in().await.unwrap();
    for (now, token, counts) in [
        (1_000, "t1", (1, 0)),
        (1_239, "t1", (1, 0)),
        (1_240, "t2", (2, 1)),
        (1_300, "t2", (2, 1)),
        (1_480, "t3", (3, 2)),
        // Long over: the refresh token lives on.
        (9_000, "t4", (4, 3)),
    ] {
        scene.clock.set_unix(UnixTime::from_secs(now));
        assert_eq!(text(&token_manager).await.as_deref(), Some(token), "{now}");
        assert_eq!(scene.server.counts(), counts, "{now}");
    }
    assert_eq!(scene.person.visits(), 1);
}

/// I5: of many who want a token at once, one refreshes it. The others go on with the one that there is, and wait when
/// that has ended.
#[tokio::test]
async fn one_refreshes_for_all() {
    let scene = Scene::new();
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    for (now, tokens, counts) in [(1_250, ["t1", "t2"], (2, 1)), (1_700, ["t3", "t3"], (3, 2))] {
        scene.clock.set_unix(UnixTime::from_secs(now));
        let all = (0..8).map(|_| {
            let token_manager = token_manager.clone();
            tokio::spawn(async move { text(&token_manager).await })
        });
        for one in all.collect::<Vec<_>>() {
            assert!(tokens.contains(&one.await.unwrap().unwrap().as_str()));
        }
        assert_eq!(scene.server.counts(), counts);
    }
}

/// I5: a token of a client that is registered no more cannot be refreshed, and the person is asked anew.
#[tokio::test]
async fn a_token_ends_with_its_client() {
    let scene = Scene::new();
    let store = CredentialStore::in_memory();
    let token_manager = scene.token_manager(store.clone());
    let issuer = token_manager.sign_in().await.unwrap().issuer().clone();
    store.lock_client(&issuer, scene.person.redirect_uri(), None).await.unwrap().remove().unwrap();
    scene.clock.set_unix(UnixTime::from_secs(1_400));
    assert_eq!(text(&token_manager).await, None);
    let mut authorization = token_manager.request_authorization();
    assert_eq!(send(&mut authorization).await, None);
    assert!(authorization.should_retry(StatusCode::UNAUTHORIZED, &refusal("")).await.unwrap());
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t2"));
    assert_eq!((scene.server.counts(), scene.person.visits()), ((2, 0), 2));
}

/// I5: while somebody renews the token, which may take as long as a person does, the one that lives is used without a
/// wait; one that has ended is not.
#[tokio::test]
async fn a_token_that_lives_is_not_waited_for() {
    let scene = Scene::new();
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    let _renews = token_manager.renewing.lock().await;
    for (now, is_there) in [(1_250, true), (1_300, false)] {
        scene.clock.set_unix(UnixTime::from_secs(now));
        let looks = text(&token_manager);
        tokio::pin!(looks);
        let looked = std::future::poll_fn(|context| std::task::Poll::Ready(looks.as_mut().poll(context))).await;
        assert_eq!(looked.is_ready(), is_there, "{now}");
    }
}

/// I5: a refresh whose waiter gives up is still written down: the rotated token is not lost.
#[tokio::test]
async fn a_refresh_outlives_its_waiter() {
    let (scene, scratch) = (Scene::new(), ScratchDirectory::new());
    let token_manager = scene.token_manager(CredentialStore::in_directory(scratch.path()));
    token_manager.sign_in().await.unwrap();
    scene.clock.set_unix(UnixTime::from_secs(1_250));
    {
        let given_up = token_manager.token();
        tokio::pin!(given_up);
        // Begun, and not waited for.
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(given_up.as_mut().poll(context))).await.is_pending()
        );
    }
    while scene.server.counts() != (2, 1) {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(&token_manager).await.as_deref(), Some("t2"));
    scene.clock.set_unix(UnixTime::from_secs(1_500));
    assert_eq!(text(&token_manager).await.as_deref(), Some("t3"));
    assert_eq!((scene.server.counts(), scene.person.visits()), ((3, 2), 1));
}

/// I5: of two that share nothing but the files, one refreshes, and the other has the newer token and does not write
/// over it.
#[tokio::test]
async fn one_refreshes_for_all_processes() {
    let (scene, scratch) = (Scene::new(), ScratchDirectory::new());
    let first = scene.token_manager(CredentialStore::in_directory(scratch.path()));
    first.sign_in().await.unwrap();
    let second = scene.token_manager(CredentialStore::in_directory(scratch.path()));
    assert_eq!(text(&second).await.as_deref(), Some("t1"));
    scene.clock.set_unix(UnixTime::from_secs(1_250));
    let (one, other) = tokio::join!(text(&first), text(&second));
    assert_eq!((one.as_deref(), other.as_deref()), (Some("t2"), Some("t2")));
    assert_eq!(scene.server.counts(), (2, 1));
    // The next to refresh does it with what the other got.
    scene.clock.set_unix(UnixTime::from_secs(1_500));
    assert_eq!(text(&second).await.as_deref(), Some("t3"));
    assert_eq!(text(&first).await.as_deref(), Some("t3"));
    assert_eq!((scene.server.counts(), scene.person.visits()), ((3, 2), 1));
}

/// I5: a refresh that fails early is no failure; after the end it is, and the credentials are kept.
#[tokio::test]
async fn an_early_refresh_may_fail() {
    let scene = Scene::new();
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    scene.server.down.store(true, Ordering::Relaxed);
    scene.clock.set_unix(UnixTime::from_secs(1_250));
    assert_eq!(text(&token_manager).await.as_deref(), Some("t1"));
    scene.clock.set_unix(UnixTime::from_secs(1_300));
    assert_eq!(token_manager.token().await.unwrap_err().code(), "client.status");
    scene.server.down.store(false, Ordering::Relaxed);
    assert_eq!(text(&token_manager).await.as_deref(), Some("t2"));
}

/// I5: a refresh token that the server does not take any more is forgotten, and the person is asked anew.
#[tokio::test]
async fn a_dead_refresh_token_leads_to_a_new_authorization() {
    let (scene, scratch) = (Scene::new(), ScratchDirectory::new());
    let token_manager = scene.token_manager(CredentialStore::in_directory(scratch.path()));
    token_manager.sign_in().await.unwrap();
    *scene.server.live.lock().unwrap() = None;
    scene.clock.set_unix(UnixTime::from_secs(1_400));
    assert_eq!(text(&token_manager).await, None);
    assert_eq!(scene.server.counts(), (1, 1));
    // Another process does not try it again.
    assert_eq!(text(&scene.token_manager(CredentialStore::in_directory(scratch.path()))).await, None);
    assert_eq!(scene.server.counts(), (1, 1));
    let mut authorization = token_manager.request_authorization();
    assert_eq!(send(&mut authorization).await, None);
    assert!(authorization.should_retry(StatusCode::UNAUTHORIZED, &refusal("")).await.unwrap());
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t2"));
    assert_eq!((scene.server.counts(), scene.person.visits()), ((2, 1), 2));
    assert_eq!(text(&scene.token_manager(CredentialStore::in_directory(scratch.path()))).await.as_deref(), Some("t2"));
}
