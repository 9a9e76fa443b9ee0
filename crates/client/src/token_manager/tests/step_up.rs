//! A step-up requests all scopes once; denied scopes are remembered.

use portcullis_metadata::{Secret, UnixTime};

use super::*;
use crate::{
    NonInteractiveGrant,
    registration::{ClientAuthentication, ClientInformation},
};

/// Returns the scopes of the last authorization request.
fn requested_scopes(user: &ScriptedUser) -> String {
    let visit = user.last_visit();
    let scope = visit.query_pairs().find(|(name, _)| name == "scope");
    scope
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// I6: further scopes are requested together with the earlier ones, at most twice for one request.
#[tokio::test]
async fn a_step_up_requests_all_scopes() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    assert_eq!(requested_scopes(&fixture.user), "mcp:tools");

    let mut authorization = token_manager.request_authorization();
    for (missing, all) in [
        ("files:read", "files:read mcp:tools"),
        ("files:write", "files:read files:write mcp:tools"),
    ] {
        send(&mut authorization).await;
        assert!(
            authorization
                .should_retry(StatusCode::FORBIDDEN, &insufficient_scope(missing))
                .await
                .unwrap()
        );
        assert_eq!(requested_scopes(&fixture.user), all);
    }
    send(&mut authorization).await;
    assert!(
        !authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("more"))
            .await
            .unwrap()
    );
    assert_eq!(fixture.user.visits(), 3);

    // Without an accepted request, this would be one sign-in too many.
    let mut other = token_manager.request_authorization();
    send(&mut other).await;
    let refused = other
        .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("more"))
        .await;
    assert_eq!(refused.unwrap_err().code(), "client.too_many_sign_ins");
    assert!(
        !authorization
            .should_retry(StatusCode::OK, &HeaderMap::new())
            .await
            .unwrap()
    );

    // The next request uses the granted scopes and does not request them again.
    let mut next = token_manager.request_authorization();
    assert_eq!(send(&mut next).await.as_deref(), Some("Bearer t3"));
    assert!(
        !next
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("files:read"))
            .await
            .unwrap()
    );
    assert!(
        next.should_retry(StatusCode::FORBIDDEN, &insufficient_scope("more"))
            .await
            .unwrap()
    );
    assert_eq!(fixture.user.visits(), 4);

    for other in [
        rejection(r#", error="insufficient_scope""#),
        rejection(r#", scope="x""#),
        HeaderMap::new(),
    ] {
        assert!(
            !token_manager
                .request_authorization()
                .should_retry(StatusCode::FORBIDDEN, &other)
                .await
                .unwrap()
        );
    }
}

/// I6: a token that was refreshed meanwhile has the same scopes, so the user is asked.
#[tokio::test]
async fn a_newer_token_can_lack_the_scopes() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    fixture.clock.set_unix(UnixTime::from_secs(1_250));
    assert_eq!(text(&token_manager).await.as_deref(), Some("t2"));
    assert!(
        authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("files:read"))
            .await
            .unwrap()
    );
    assert_eq!(fixture.user.visits(), 2);
    assert_eq!(
        requested_scopes(&fixture.user).as_str(),
        "files:read mcp:tools"
    );
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t3"));
}

/// I6: another process's token with the scopes is used without asking the user, unless it has
/// expired.
#[tokio::test]
async fn one_step_up_for_all_processes() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let [first, second, third] =
        [(); 3].map(|()| fixture.token_manager(CredentialStore::in_directory(scratch.path())));
    first.sign_in().await.unwrap();
    let mut one = first.request_authorization();
    let mut other = second.request_authorization();
    let mut late = third.request_authorization();
    for authorization in [&mut one, &mut other, &mut late] {
        assert_eq!(send(authorization).await.as_deref(), Some("Bearer t1"));
    }
    for authorization in [&mut one, &mut other] {
        assert!(
            authorization
                .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("files:read"))
                .await
                .unwrap()
        );
        assert_eq!(send(authorization).await.as_deref(), Some("Bearer t2"));
        assert_eq!(fixture.user.visits(), 2);
    }
    fixture.clock.set_unix(UnixTime::from_secs(1_400));
    assert!(
        late.should_retry(StatusCode::FORBIDDEN, &insufficient_scope("files:read"))
            .await
            .unwrap()
    );
    assert_eq!(send(&mut late).await.as_deref(), Some("Bearer t3"));
    assert_eq!(fixture.user.visits(), 3);
}

/// I6: after a failed request, the scopes are requested again.
#[tokio::test]
async fn a_failed_step_up_is_not_a_denial() {
    let mut fixture = Fixture::new();
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    fixture.user = ScriptedUser::responds(move |state| {
        let state = if failing.load(Ordering::Relaxed) {
            "another"
        } else {
            state
        };
        format!("code=the-code&state={state}&iss=https%3A%2F%2Fauth.example.com")
    });
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    for (fail, expected) in [(true, Err("redirect.state")), (false, Ok(true))] {
        fails.store(fail, Ordering::Relaxed);
        let mut authorization = token_manager.request_authorization();
        send(&mut authorization).await;
        let again = authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("admin"))
            .await;
        assert_eq!(again.map_err(|error| error.code()), expected);
    }
}

/// I6: denied scopes are not requested again, with or without others.
#[tokio::test]
async fn denied_scopes_are_remembered() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    *fixture.server.grants.lock() = Some("mcp:tools".into());
    for _ in 0..2 {
        let mut authorization = token_manager.request_authorization();
        send(&mut authorization).await;
        assert!(
            !authorization
                .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("admin"))
                .await
                .unwrap()
        );
        assert_eq!(fixture.user.visits(), 2);
    }
    *fixture.server.grants.lock() = None;
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    assert!(
        authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("files:read"))
            .await
            .unwrap()
    );
    assert_eq!(requested_scopes(&fixture.user), "files:read mcp:tools");
}

/// I6: a scope that was granted in its long form is not denied.
#[tokio::test]
async fn a_grant_in_the_long_form_is_not_a_denial() {
    for is_refused in [false, true] {
        let mut fixture = Fixture::new();
        let refuses = Arc::new(AtomicBool::new(false));
        let refusing = refuses.clone();
        fixture.user = ScriptedUser::responds(move |state| {
            let result = if refusing.load(Ordering::Relaxed) {
                "error=access_denied"
            } else {
                "code=the-code"
            };
            format!("{result}&state={state}&iss=https%3A%2F%2Fauth.example.com")
        });
        let token_manager = fixture.token_manager(CredentialStore::in_memory());
        *fixture.server.grants.lock() = Some("mcp:tools api://1/read".into());
        token_manager.sign_in().await.unwrap();
        refuses.store(is_refused, Ordering::Relaxed);
        let mut authorization = token_manager.request_authorization();
        send(&mut authorization).await;
        let denied = authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("read admin"))
            .await;
        assert_eq!(denied.ok(), (!is_refused).then_some(false));

        refuses.store(false, Ordering::Relaxed);
        *fixture.server.grants.lock() = None;
        let mut next = token_manager.request_authorization();
        send(&mut next).await;
        assert!(
            next.should_retry(StatusCode::FORBIDDEN, &insufficient_scope("read files"))
                .await
                .unwrap()
        );
        let mut last = token_manager.request_authorization();
        send(&mut last).await;
        assert!(
            !last
                .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("admin"))
                .await
                .unwrap()
        );
    }
}

/// I6: a denial is returned once, and the current token stays in use.
#[tokio::test]
async fn a_denied_step_up_keeps_the_token() {
    let mut fixture = Fixture::new();
    let denies = Arc::new(AtomicBool::new(false));
    let is_denied = denies.clone();
    fixture.user = ScriptedUser::responds(move |state| {
        let result = if is_denied.load(Ordering::Relaxed) {
            "error=access_denied"
        } else {
            "code=the-code"
        };
        format!("{result}&state={state}&iss=https%3A%2F%2Fauth.example.com")
    });
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    denies.store(true, Ordering::Relaxed);
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    let denied = authorization
        .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("admin"))
        .await
        .unwrap_err();
    assert_eq!(denied.code(), "redirect.denied");

    let mut next = token_manager.request_authorization();
    assert_eq!(send(&mut next).await.as_deref(), Some("Bearer t1"));
    assert!(
        !next
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("admin"))
            .await
            .unwrap()
    );
    assert_eq!(fixture.user.visits(), 2);
}

/// I8: a workload's single request is not repeated for more scopes.
#[tokio::test]
async fn a_workload_does_not_step_up() {
    let fixture = Fixture::new();
    let settings = AuthorizerSettings {
        client: Some(ClientInformation {
            client_id: "w".into(),
            authentication: ClientAuthentication::None,
        }),
        ..AuthorizerSettings::default()
    };
    let grant = NonInteractiveGrant::JwtBearer(Arc::new(Secret::new("assertion")));
    let authorizer = Authorizer::non_interactive_builder(grant)
        .fetch(fixture.network.clone())
        .clock(fixture.clock.clone())
        .settings(settings)
        .build()
        .unwrap();
    let token_manager = Arc::new(TokenManager::new(
        StartUrl::parse(RESOURCE).unwrap(),
        Arc::new(authorizer),
    ));
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    assert!(
        authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert!(
        !authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("more"))
            .await
            .unwrap()
    );
    assert_eq!(fixture.network.to(TOKEN_URL).len(), 1);
}

/// I6, H2: if the registration lacks the scopes and is not updated, the user is asked before a new
/// client is registered. Without consent, the request fails with the missing scopes and what to
/// request.
#[tokio::test]
async fn a_new_registration_is_offered() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    fixture.user.refuse_registration(true);
    for questions in 1..=2 {
        let mut authorization = token_manager.request_authorization();
        send(&mut authorization).await;
        let error = authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("files:read"))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "client.registration_lacks_scopes");
        let text = error.to_string();
        assert!(text.starts_with("insufficient_scope"), "{text}");
        let ClientError::RegistrationLacksScopes { registration } = error else {
            panic!("{text}")
        };
        assert_eq!(registration.scopes.to_string(), "files:read mcp:tools");
        assert_eq!(registration.start.to_string(), RESOURCE);
        let asked = fixture.user.registrations();
        assert_eq!(asked.len(), questions);
        assert_eq!(asked[0].missing.as_str(), "files:read");
    }
    assert_eq!(fixture.user.visits(), 1);
    assert_eq!(fixture.network.to(REGISTRATION_URL).len(), 1);

    fixture.user.refuse_registration(false);
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    assert!(
        authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("files:read"))
            .await
            .unwrap()
    );
    assert_eq!(fixture.user.visits(), 2);
    assert_eq!(fixture.network.to(REGISTRATION_URL).len(), 2);
}
