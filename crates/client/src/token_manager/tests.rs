//! Tokens after a 401: one for all requests and processes. Also the server and the fixture of these
//! tests.

use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    task::Poll,
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex as BlockingMutex;
use portcullis_discovery::FetchRequest;
use url::Url;

use super::*;
use crate::{
    AuthorizerSettings, BroaderResource,
    store::CredentialStore,
    testing::{
        FetchFn, ManualClock, PRM_URL, REGISTRATION_URL, RESOURCE, Reply, ScratchDirectory,
        ScriptedUser, TOKEN_URL, clock, form, metadata, prm, well_behaved,
    },
};

mod renewal;
mod scoped;
mod sign_out;
mod sourced;
mod step_up;
mod stored;
mod unwritable;

/// An authorization server that counts requests, rotates refresh tokens, and rejects unknown ones.
#[derive(Default)]
struct TestServer {
    issued: AtomicU32,
    refreshes: AtomicU32,
    /// The only valid refresh token.
    live: BlockingMutex<Option<String>>,
    down: AtomicBool,
    /// The scopes that it grants, independent of the request.
    grants: BlockingMutex<Option<String>>,
}

impl TestServer {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn network(self: &Arc<Self>) -> Arc<FetchFn> {
        let server = self.clone();
        FetchFn::new(move |request| match request.url.as_str() {
            TOKEN_URL => Some(server.token(request)),
            _ => well_behaved(request),
        })
    }

    /// Answers a token request: refreshes and authorizations are counted.
    fn token(&self, request: &FetchRequest) -> Reply {
        let form = form(request);
        let mut live = self.live.lock();
        if form["grant_type"] == "refresh_token" {
            self.refreshes.fetch_add(1, Ordering::Relaxed);
            if self.down.load(Ordering::Relaxed) {
                return Reply::status(503);
            }
            assert_eq!(form["resource"].as_str(), RESOURCE);
            assert_eq!(form["client_id"].as_str(), "registered");
            if live.as_ref() != Some(&form["refresh_token"]) {
                return Reply::json(400, r#"{"error":"invalid_grant"}"#);
            }
        }
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        *live = Some(format!("r{number}"));
        let mut response = serde_json::json!({
            "access_token": format!("t{number}"), "token_type": "Bearer", "expires_in": 300,
            "refresh_token": format!("r{number}"),
        });
        if let Some(scope) = &*self.grants.lock() {
            response["scope"] = scope.as_str().into();
        }
        Reply::json(200, response)
    }

    fn counts(&self) -> (u32, u32) {
        (
            self.issued.load(Ordering::Relaxed),
            self.refreshes.load(Ordering::Relaxed),
        )
    }
}

struct Fixture {
    server: Arc<TestServer>,
    network: Arc<FetchFn>,
    user: Arc<ScriptedUser>,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Self {
        let server = TestServer::new();
        let network = server.network();
        Self {
            server,
            network,
            user: ScriptedUser::consents(),
            clock: clock(),
        }
    }

    fn token_manager(&self, store: CredentialStore) -> Arc<TokenManager> {
        self.token_manager_with(AuthorizerSettings {
            store,
            ..AuthorizerSettings::default()
        })
    }

    /// A token manager that requests these scopes.
    fn token_manager_for_scopes(&self, scopes: &str) -> Arc<TokenManager> {
        let scopes = Some(Scopes::parse(scopes).unwrap());
        self.token_manager_with(AuthorizerSettings {
            scopes,
            ..AuthorizerSettings::default()
        })
    }

    fn token_manager_with(&self, settings: AuthorizerSettings) -> Arc<TokenManager> {
        let authorizer = Authorizer::builder(self.user.clone())
            .fetch(self.network.clone())
            .clock(self.clock.clone())
            .settings(settings)
            .build()
            .unwrap();
        Arc::new(TokenManager::new(
            StartUrl::parse(RESOURCE).unwrap(),
            Arc::new(authorizer),
        ))
    }
}

async fn text(token_manager: &TokenManager) -> Option<String> {
    token_manager
        .token()
        .await
        .unwrap()
        .map(|token| token.access_token().secret().to_owned())
}

async fn send(authorization: &mut RequestAuthorization) -> Option<String> {
    send_to(authorization, RESOURCE).await
}

async fn send_to(authorization: &mut RequestAuthorization, url: &str) -> Option<String> {
    let mut headers = HeaderMap::from_iter([(
        header::AUTHORIZATION,
        HeaderValue::from_static("Basic other"),
    )]);
    authorization
        .authorize(&Method::GET, &Url::parse(url).unwrap(), &mut headers)
        .await
        .unwrap();
    headers
        .get(header::AUTHORIZATION)
        .map(|value| value.to_str().unwrap().to_owned())
}

/// The headers of a 401 with these parameters of the challenge.
fn rejection(parameters: &str) -> HeaderMap {
    let value = format!(r#"Bearer realm="mcp", resource_metadata="{PRM_URL}"{parameters}"#);
    HeaderMap::from_iter([(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_str(&value).unwrap(),
    )])
}

fn insufficient_scope(scopes: &str) -> HeaderMap {
    rejection(&format!(
        r#", error="insufficient_scope", scope="{scopes}""#
    ))
}

/// Polls a future once, and drops it. Returns its output if it is ready.
async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// I5: a token that is rejected before its expiry is refreshed; a second 401 in a row is final.
#[tokio::test]
async fn a_401_is_retried_once() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    token_manager.sign_in().await.unwrap();
    let mut authorization = token_manager.request_authorization();
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t1"));
    assert!(
        authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t2"));
    assert!(
        !authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert_eq!(fixture.server.counts(), (2, 1));
    assert_eq!(fixture.user.visits(), 1);
    for status in [StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND] {
        assert!(
            !authorization
                .should_retry(status, &rejection(""))
                .await
                .unwrap()
        );
    }
}

/// I5: if the rejected token has already been replaced, the newer token is used.
#[tokio::test]
async fn a_replaced_token_is_not_replaced_again() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let first = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    let second = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    first.sign_in().await.unwrap();
    let mut one = first.request_authorization();
    let mut same = first.request_authorization();
    let mut other = second.request_authorization();
    for authorization in [&mut one, &mut same, &mut other] {
        assert_eq!(send(authorization).await.as_deref(), Some("Bearer t1"));
    }
    for authorization in [&mut one, &mut same, &mut other] {
        assert!(
            authorization
                .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
                .await
                .unwrap()
        );
        assert_eq!(send(authorization).await.as_deref(), Some("Bearer t2"));
    }
    assert_eq!(fixture.server.counts(), (2, 1));

    // One fetch each for the sign-in, the refresh and the other process. The second user of the
    // shared token manager sent none.
    assert_eq!(fixture.network.to(PRM_URL).len(), 3);
}

/// If several instances start without a token, only one asks the user.
#[tokio::test]
async fn one_sign_in_for_all_processes() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    let all = [(); 3].map(|()| {
        let token_manager = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
        tokio::spawn(async move {
            let mut authorization = token_manager.request_authorization();
            assert_eq!(send(&mut authorization).await, None);
            assert!(
                authorization
                    .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
                    .await
                    .unwrap()
            );
            send(&mut authorization).await
        })
    });
    for one in all {
        assert_eq!(one.await.unwrap().as_deref(), Some("Bearer t1"));
    }
    assert_eq!(fixture.user.visits(), 1);
    assert_eq!(fixture.network.to(REGISTRATION_URL).len(), 1);
}

/// A sign-in continues when the request that needs it is cancelled; the next request has its token.
#[tokio::test]
async fn a_sign_in_outlives_its_request() {
    let fixture = Fixture::new();
    let token_manager = fixture.token_manager(CredentialStore::in_memory());
    let mut cancelled = token_manager.request_authorization();
    assert!(
        poll_once(cancelled.should_retry(StatusCode::UNAUTHORIZED, &rejection("")))
            .await
            .is_none()
    );
    let mut authorization = token_manager.request_authorization();
    assert_eq!(send(&mut authorization).await, None);
    assert!(
        authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert_eq!(send(&mut authorization).await.as_deref(), Some("Bearer t1"));
    assert_eq!(fixture.server.counts(), (1, 0));
    assert_eq!(fixture.user.visits(), 1);
}

/// I10: a token of the caller replaces every flow; it is sent only to its origin, and a rejection
/// is final.
#[tokio::test]
async fn a_token_of_the_caller_replaces_the_flow() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let token_manager = Arc::new(TokenManager::with_access_token(
        start,
        AccessToken::new("given"),
    ));
    let mut authorization = token_manager.request_authorization();
    assert_eq!(
        send(&mut authorization).await.as_deref(),
        Some("Bearer given")
    );
    assert!(
        !authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert!(
        !authorization
            .should_retry(StatusCode::FORBIDDEN, &insufficient_scope("a"))
            .await
            .unwrap()
    );

    for elsewhere in ["https://evil.example/mcp", "http://mcp.example.com/mcp"] {
        let mut headers = HeaderMap::new();
        authorization
            .authorize(&Method::GET, &Url::parse(elsewhere).unwrap(), &mut headers)
            .await
            .unwrap();
        assert!(headers.is_empty(), "{elsewhere}");
    }
    assert!(token_manager.current().is_none());
    assert!(token_manager.token().await.unwrap().is_none());
    assert_eq!(
        token_manager.sign_in().await.unwrap_err().code(),
        "client.no_authorizer"
    );
    assert_eq!(
        format!("{token_manager:?}"),
        "TokenManager { token: None, .. }"
    );
}

/// H3: when the resource lists another authorization server, the client registers there, sends it
/// no credentials of the first server, and removes the first server's token.
#[tokio::test]
async fn another_server_requires_another_registration() {
    const OTHER: &str = "https://other.example";
    let scratch = ScratchDirectory::new();
    let moved = Arc::new(AtomicBool::new(false));
    let mut fixture = Fixture::new();
    let server = fixture.server.clone();
    let has_moved = moved.clone();
    fixture.network = FetchFn::new(move |request| match request.url.as_str() {
        PRM_URL if has_moved.load(Ordering::Relaxed) => {
            let mut document = prm(RESOURCE);
            document["authorization_servers"] = serde_json::json!([OTHER]);
            Some(Reply::json(200, document))
        }
        TOKEN_URL => Some(server.token(request)),
        "https://other.example/.well-known/oauth-authorization-server" => {
            let text = metadata()
                .to_string()
                .replace("https://auth.example.com", OTHER);
            Some(Reply::json(
                200,
                text.replace(
                    "\"authorization_response_iss_parameter_supported\":true,",
                    "",
                ),
            ))
        }
        "https://other.example/register" => Some(Reply::json(201, r#"{"client_id":"there"}"#)),
        "https://other.example/token" => {
            assert_eq!(form(request)["client_id"], "there");
            Some(Reply::json(
                200,
                r#"{"access_token":"other","token_type":"Bearer"}"#,
            ))
        }
        _ => well_behaved(request),
    });
    let has_moved = moved.clone();
    fixture.user = ScriptedUser::responds(move |state| {
        let issuer = if has_moved.load(Ordering::Relaxed) {
            OTHER
        } else {
            "https://auth.example.com"
        };
        format!("code=the-code&state={state}&iss={issuer}")
    });
    let token_manager = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    token_manager.sign_in().await.unwrap();
    moved.store(true, Ordering::Relaxed);
    let mut authorization = token_manager.request_authorization();
    send(&mut authorization).await;
    assert!(
        authorization
            .should_retry(StatusCode::UNAUTHORIZED, &rejection(""))
            .await
            .unwrap()
    );
    assert_eq!(
        send(&mut authorization).await.as_deref(),
        Some("Bearer other")
    );

    // The first server's refresh token was not sent.
    assert_eq!(fixture.server.counts(), (1, 0));
    let left = CredentialStore::in_directory(scratch.path())
        .tokens(token_manager.start_url())
        .unwrap();
    assert_eq!(
        left.iter()
            .map(|token| token.issuer().as_str())
            .collect::<Vec<_>>(),
        [OTHER]
    );
}

/// A client that the server has forgotten is registered again, once.
#[tokio::test]
async fn a_forgotten_client_is_registered_again() {
    for (knows_second, expected) in [(true, Ok(())), (false, Err("client.token"))] {
        let registered = Arc::new(AtomicU32::new(0));
        let mut fixture = Fixture::new();
        fixture.network = FetchFn::new(move |request| match request.url.as_str() {
            REGISTRATION_URL => {
                let number = registered.fetch_add(1, Ordering::Relaxed) + 1;
                Some(Reply::json(201, format!(r#"{{"client_id":"c{number}"}}"#)))
            }
            TOKEN_URL if form(request)["client_id"] == "c2" && knows_second => {
                well_behaved(request)
            }
            TOKEN_URL => Some(Reply::json(401, r#"{"error":"invalid_client"}"#)),
            _ => well_behaved(request),
        });
        let token_manager = fixture.token_manager(CredentialStore::in_memory());
        assert_eq!(
            token_manager
                .sign_in()
                .await
                .map(|_| ())
                .map_err(|error| error.code()),
            expected
        );
        assert_eq!(fixture.network.to(REGISTRATION_URL).len(), 2);
    }
}

/// I7: a corrupted entry does not prevent a sign-in.
#[tokio::test]
async fn a_corrupted_entry_is_not_a_token() {
    let fixture = Fixture::new();
    let scratch = ScratchDirectory::new();
    fixture
        .token_manager(CredentialStore::in_directory(scratch.path()))
        .sign_in()
        .await
        .unwrap();
    for entry in std::fs::read_dir(scratch.path()).unwrap() {
        std::fs::write(entry.unwrap().path(), "{").unwrap();
    }
    let token_manager = fixture.token_manager(CredentialStore::in_directory(scratch.path()));
    assert_eq!(text(&token_manager).await, None);

    token_manager.sign_in().await.unwrap();
    assert_eq!(
        text(&fixture.token_manager(CredentialStore::in_directory(scratch.path())))
            .await
            .as_deref(),
        Some("t2")
    );

    let kept = std::fs::read_dir(scratch.path()).unwrap();
    let kept = kept.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .path()
            .display()
            .to_string()
            .contains("corrupted")
    });
    assert_eq!(kept.count(), 2);
}
