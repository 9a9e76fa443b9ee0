//! A stored token is used only for its URLs.

use portcullis_metadata::UnixTime;

use super::*;

const ROOT: &str = "https://mcp.example.com/";
const OF_WHOLE_HOST: BroaderResource = BroaderResource::OfWholeHost;
const EVIL: &str = "https://mcp.example.com/evil/mcp";

/// A fixture in which every path of the origin has the whole origin as its resource, and all
/// servers grant tokens.
fn shared_origin() -> Fixture {
    let mut fixture = Fixture::new();
    let issued = AtomicU32::new(0);
    fixture.network = FetchFn::new(move |request| match request.url.as_str() {
        ROOT | EVIL => Some(Reply::challenge()),
        TOKEN_URL => {
            assert_eq!(form(request)["resource"], ROOT);
            let number = issued.fetch_add(1, Ordering::Relaxed) + 1;
            let response = serde_json::json!({
                "access_token": format!("t{number}"), "token_type": "Bearer", "expires_in": 300,
                "refresh_token": format!("r{number}"),
            });
            Some(Reply::json(200, response))
        }
        PRM_URL => Some(Reply::json(200, prm(ROOT))),
        _ => well_behaved(request),
    });
    fixture
}

/// A token manager for this start URL and store.
fn token_manager(
    fixture: &Fixture,
    start: &str,
    store: &CredentialStore,
    broader_resource: BroaderResource,
) -> Arc<TokenManager> {
    let settings = AuthorizerSettings {
        store: store.clone(),
        broader_resource,
        ..AuthorizerSettings::default()
    };
    let authorizer = Authorizer::builder(fixture.user.clone())
        .fetch(fixture.network.clone())
        .clock(fixture.clock.clone())
        .settings(settings)
        .build()
        .unwrap();
    Arc::new(TokenManager::new(
        StartUrl::parse(start).unwrap(),
        Arc::new(authorizer),
    ))
}

/// H4: a token for the whole origin is not sent to another path; that path gets a token only if the
/// user accepts the broader resource.
#[tokio::test]
async fn another_path_does_not_get_the_token() {
    let fixture = shared_origin();
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    token_manager(&fixture, ROOT, &store, OF_WHOLE_HOST)
        .sign_in()
        .await
        .unwrap();
    assert_eq!(
        text(&token_manager(&fixture, ROOT, &store, OF_WHOLE_HOST))
            .await
            .as_deref(),
        Some("t1")
    );

    let evil = token_manager(&fixture, EVIL, &store, OF_WHOLE_HOST);
    assert_eq!(text(&evil).await, None);
    let mut authorization = evil.request_authorization();
    assert_eq!(send_to(&mut authorization, EVIL).await, None);

    let rejected = authorization
        .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
        .await
        .unwrap_err();
    assert_eq!(rejected.code(), "client.broader_resource");
    assert_eq!(fixture.user.visits(), 1);

    // A token from the caller is ignored, too.
    evil.set_current(
        token_manager(&fixture, ROOT, &store, OF_WHOLE_HOST)
            .token()
            .await
            .unwrap()
            .unwrap(),
    );
    assert!(evil.current().is_none());
    let sent = fixture.network.to(EVIL);
    assert!(
        sent.iter()
            .all(|request| !request.headers.contains_key(header::AUTHORIZATION))
    );
}

/// H4: two start URLs with the same resource have separate sign-ins and refreshes. A step-up does
/// not ask again.
#[tokio::test]
async fn start_urls_with_one_resource_have_separate_tokens() {
    let fixture = shared_origin();
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    let root = token_manager(&fixture, ROOT, &store, OF_WHOLE_HOST);
    let accepted = token_manager(&fixture, EVIL, &store, BroaderResource::Accepted);
    root.sign_in().await.unwrap();
    accepted.sign_in().await.unwrap();
    fixture.clock.set_unix(UnixTime::from_secs(1_250));
    let later = token_manager(&fixture, EVIL, &store, OF_WHOLE_HOST);
    assert_eq!(
        text(&later).await.as_deref(),
        Some("t3"),
        "refreshed, with its own refresh token"
    );
    assert_eq!(text(&root).await.as_deref(), Some("t4"));

    let refreshed: Vec<_> = fixture
        .network
        .to(TOKEN_URL)
        .iter()
        .filter_map(|it| form(it).remove("refresh_token"))
        .collect();
    assert_eq!(refreshed, ["r2", "r1"]);

    let mut authorization = later.request_authorization();
    send_to(&mut authorization, EVIL).await;
    assert!(
        authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("more"))
            .await
            .unwrap(),
        "the sign-in has accepted the resource"
    );
    assert_eq!(
        text(&token_manager(&fixture, EVIL, &store, OF_WHOLE_HOST))
            .await
            .as_deref(),
        Some("t5")
    );
    assert_eq!(
        text(&token_manager(&fixture, ROOT, &store, OF_WHOLE_HOST))
            .await
            .as_deref(),
        Some("t4")
    );

    assert_eq!(later.sign_out().await.unwrap(), SignOut::ForgottenLocally);
    assert_eq!(
        text(&token_manager(&fixture, EVIL, &store, OF_WHOLE_HOST)).await,
        None
    );
    assert_eq!(
        text(&token_manager(&fixture, ROOT, &store, OF_WHOLE_HOST))
            .await
            .as_deref(),
        Some("t4")
    );
}

/// H4: the resource's own URL can use a token that was obtained for a path below it, and its
/// sign-out removes all of them.
#[tokio::test]
async fn a_sign_out_removes_every_token_that_could_be_used() {
    let fixture = shared_origin();
    let store = CredentialStore::in_memory();
    token_manager(&fixture, EVIL, &store, BroaderResource::Accepted)
        .sign_in()
        .await
        .unwrap();
    let root = token_manager(&fixture, ROOT, &store, OF_WHOLE_HOST);
    assert_eq!(text(&root).await.as_deref(), Some("t1"));
    root.sign_in().await.unwrap();
    assert_eq!(store.tokens(root.start_url()).unwrap().len(), 2);
    assert_eq!(root.sign_out().await.unwrap(), SignOut::ForgottenLocally);
    assert!(store.tokens(root.start_url()).unwrap().is_empty());
    assert_eq!(
        text(&token_manager(
            &fixture,
            EVIL,
            &store,
            BroaderResource::Accepted
        ))
        .await,
        None
    );
}
