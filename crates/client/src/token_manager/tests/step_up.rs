//! More scopes.

use portcullis_metadata::Secret;
use portcullis_metadata::UnixTime;

use super::*;
use crate::{ClientAuthentication, ClientInformation, NonInteractiveGrant};

fn asked(person: &ScriptedUser) -> String {
    let visit = person.last_visit();
    let scope = visit.query_pairs().find(|(name, _)| name == "scope");
    scope.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// I6: more scopes are asked for together with those asked before, twice at most for one authorization.
#[tokio::test]
async fn a_step_up_asks_for_all_scopes() {
    let scene = Scene::new();
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    assert_eq!(asked(&scene.person), "mcp:tools");
    let mut authorization = token_manager.request_authorization();
    for (missing, again, visits, all) in [
        ("files:read", true, 2, "files:read mcp:tools"),
        ("files:write", true, 3, "files:read files:write mcp:tools"),
        ("more", false, 3, "files:read files:write mcp:tools"),
    ] {
        send(&mut authorization).await;
        assert_eq!(authorization.should_retry(StatusCode::FORBIDDEN, &few(missing)).await.unwrap(), again, "{missing}");
        assert_eq!((scene.person.visits(), asked(&scene.person).as_str()), (visits, all));
    }
    // What was granted since serves the next authorization; what a token has is not asked for again.
    let mut next = token_manager.request_authorization();
    assert_eq!(send(&mut next).await.as_deref(), Some("Bearer t3"));
    assert!(!next.should_retry(StatusCode::FORBIDDEN, &few("files:read")).await.unwrap());
    assert!(next.should_retry(StatusCode::FORBIDDEN, &few("more")).await.unwrap());
    assert_eq!(scene.person.visits(), 4);
    for other in [refusal(r#", error="insufficient_scope""#), refusal(r#", scope="x""#), HeaderMap::new()] {
        assert!(!token_manager.request_authorization().should_retry(StatusCode::FORBIDDEN, &other).await.unwrap());
    }
}

/// I6: a token that was refreshed meanwhile has no more scopes than the one before it: the user is asked.
#[tokio::test]
async fn a_newer_token_may_lack_them_too() {
    let scene = Scene::new();
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    scene.clock.set_unix(UnixTime::from_secs(1_250));
    assert_eq!(text(&token_manager).await.as_deref(), Some("t2"));
    assert!(authorization.should_retry(StatusCode::FORBIDDEN, &few("files:read")).await.unwrap());
    assert_eq!((scene.person.visits(), asked(&scene.person).as_str()), (2, "files:read mcp:tools"));
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t3"));
}

/// I6: another process's token that has the scopes is taken, and the user is not asked again; one that has ended is
/// not taken.
#[tokio::test]
async fn one_steps_up_for_all_processes() {
    let (scene, scratch) = (Scene::new(), ScratchDirectory::new());
    let [first, second, third] = [(); 3].map(|()| scene.token_manager(CredentialStore::in_directory(scratch.path())));
    first.sign_in().await.unwrap();
    let (mut one, mut other, mut late) =
        (first.request_authorization(), second.request_authorization(), third.request_authorization());
    for authorization in [&mut one, &mut other, &mut late] {
        assert_eq!(send(authorization).await.as_deref(), Some("Bearer t1"));
    }
    for authorization in [&mut one, &mut other] {
        assert!(authorization.should_retry(StatusCode::FORBIDDEN, &few("files:read")).await.unwrap());
        assert_eq!(send(authorization).await.as_deref(), Some("Bearer t2"));
        assert_eq!(scene.person.visits(), 2);
    }
    scene.clock.set_unix(UnixTime::from_secs(1_400));
    assert!(late.should_retry(StatusCode::FORBIDDEN, &few("files:read")).await.unwrap());
    assert_eq!(send(&mut late).await.as_deref(), Some("Bearer t3"));
    assert_eq!(scene.person.visits(), 3);
}

/// I6: scopes that could not be asked for are asked for again.
#[tokio::test]
async fn a_failed_step_up_is_no_refusal() {
    let mut scene = Scene::new();
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    scene.person = ScriptedUser::answers(move |state| {
        let state = if failing.load(Ordering::Relaxed) { "another" } else { state };
        format!("code=the-code&state={state}&iss=https%3A%2F%2Fauth.example.com")
    });
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    for (fail, outcome) in [(true, Err("redirect.state")), (false, Ok(true))] {
        fails.store(fail, Ordering::Relaxed);
        let mut authorization = token_manager.request_authorization();
        send(&mut authorization).await;
        let again = authorization.should_retry(StatusCode::FORBIDDEN, &few("admin")).await;
        assert_eq!(again.map_err(|error| error.code()), outcome);
    }
}

/// I6: scopes that were not granted are not asked for again, neither alone nor with others.
#[tokio::test]
async fn refused_scopes_are_remembered() {
    let scene = Scene::new();
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    *scene.server.grants.lock().unwrap() = Some("mcp:tools".into());
    for _ in 0..2 {
        let mut authorization = token_manager.request_authorization();
        send(&mut authorization).await;
        assert!(!authorization.should_retry(StatusCode::FORBIDDEN, &few("admin")).await.unwrap());
        assert_eq!(scene.person.visits(), 2);
    }
    *scene.server.grants.lock().unwrap() = None;
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    assert!(authorization.should_retry(StatusCode::FORBIDDEN, &few("files:read")).await.unwrap());
    assert_eq!(asked(&scene.person), "files:read mcp:tools");
}

/// I6: a user who says no is told so once; the token that there is stays in use.
#[tokio::test]
async fn a_denied_step_up_keeps_the_token() {
    let mut scene = Scene::new();
    let denies = Arc::new(AtomicBool::new(false));
    let says = denies.clone();
    scene.person = ScriptedUser::answers(move |state| {
        let said = if says.load(Ordering::Relaxed) { "error=access_denied" } else { "code=the-code" };
        format!("{said}&state={state}&iss=https%3A%2F%2Fauth.example.com")
    });
    let token_manager = scene.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    denies.store(true, Ordering::Relaxed);
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    let denied = authorization.should_retry(StatusCode::FORBIDDEN, &few("admin")).await.unwrap_err();
    assert_eq!(denied.code(), "redirect.denied");
    let mut next = token_manager.request_authorization();
    assert_eq!(send(&mut next).await.as_deref(), Some("Bearer t1"));
    assert!(!next.should_retry(StatusCode::FORBIDDEN, &few("admin")).await.unwrap());
    assert_eq!(scene.person.visits(), 2);
}

/// I8: a workload's one request is not made again for more scopes.
#[tokio::test]
async fn a_workload_does_not_step_up() {
    let scene = Scene::new();
    let settings = AuthorizerSettings {
        client: Some(ClientInformation { client_id: "w".into(), authentication: ClientAuthentication::None }),
        ..AuthorizerSettings::default()
    };
    let grant = NonInteractiveGrant::JwtBearer(Arc::new(Secret::new("assertion")));
    let authorizer = Authorizer::non_interactive(scene.network.clone(), grant, scene.clock.clone(), settings);
    let token_manager = Arc::new(TokenManager::new(StartUrl::parse(RESOURCE).unwrap(), Arc::new(authorizer)));
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    assert!(authorization.should_retry(StatusCode::UNAUTHORIZED, &refusal("")).await.unwrap());
    assert!(!authorization.should_retry(StatusCode::FORBIDDEN, &few("more")).await.unwrap());
    assert_eq!(scene.network.to(TOKEN_URL).len(), 1);
}
