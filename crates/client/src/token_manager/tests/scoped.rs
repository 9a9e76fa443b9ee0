//! Tokens with a subset of the scopes are obtained without the user.

use super::*;

/// I5, I6: scopes of the sign-in that the token lacks are requested with the refresh token. Others
/// are not requested, and the user is never asked.
#[tokio::test]
async fn scopes_of_the_sign_in_are_requested() {
    let fixture = Fixture::new();
    *fixture.server.grants.lock() = Some("a".into());
    let scopes = |names: &str| Scopes::parse(names).unwrap();
    let token_manager = fixture.token_manager_for_scopes("a b");
    assert!(
        token_manager
            .token_with_scopes(&scopes("a"))
            .await
            .unwrap()
            .is_none()
    );

    token_manager.sign_in().await.unwrap();
    let with = async |names: &str| {
        let token = token_manager
            .token_with_scopes(&scopes(names))
            .await
            .unwrap()
            .unwrap();
        (
            token.access_token().secret().to_owned(),
            token.scopes().unwrap().to_string(),
        )
    };
    for names in ["", "a", "c", "a b c"] {
        assert_eq!(
            with(names).await,
            ("t1".to_owned(), "a".to_owned()),
            "{names}"
        );
    }
    assert_eq!(fixture.server.counts(), (1, 0));
    assert_eq!(
        with("b").await,
        ("t2".to_owned(), "a".to_owned()),
        "it is not granted"
    );

    *fixture.server.grants.lock() = None;
    assert_eq!(with("b").await, ("t3".to_owned(), "a b".to_owned()));
    assert_eq!(
        form(fixture.network.to(TOKEN_URL).last().unwrap())["scope"],
        "a b"
    );
    assert_eq!(with("a b").await.0, "t3");

    // Another process finds the token in the store.
    let Source::Authorizer(authorizer) = &token_manager.source else {
        panic!("no authorizer")
    };
    let other = TokenManager::new(StartUrl::parse(RESOURCE).unwrap(), authorizer.clone());
    assert_eq!(
        other
            .token_with_scopes(&scopes("b"))
            .await
            .unwrap()
            .unwrap()
            .access_token()
            .secret(),
        "t3"
    );
    assert_eq!(fixture.server.counts(), (3, 2));
    assert_eq!(fixture.user.visits(), 1);
}

/// I5: if the scopes cannot be requested, the token without them is returned. If the granted scopes
/// are unknown, those of the sign-in are requested together with the missing ones.
#[tokio::test]
async fn a_failed_request_for_scopes_keeps_the_token() {
    let fixture = Fixture::new();
    // A name that is not a valid scope.
    *fixture.server.grants.lock() = Some("\u{e4}".into());
    let token_manager = fixture.token_manager_for_scopes("a b");
    token_manager.sign_in().await.unwrap();
    let wanted = Scopes::parse("b").unwrap();
    fixture.server.down.store(true, Ordering::Relaxed);
    let token = token_manager
        .token_with_scopes(&wanted)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(token.access_token().secret(), "t1");
    assert_eq!(fixture.server.counts(), (1, 1));

    fixture.server.down.store(false, Ordering::Relaxed);
    *fixture.server.grants.lock() = None;
    let token = token_manager
        .token_with_scopes(&wanted)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(token.scopes().unwrap().as_str(), "a b");
    assert_eq!(
        form(fixture.network.to(TOKEN_URL).last().unwrap())["scope"],
        "a b"
    );
}
