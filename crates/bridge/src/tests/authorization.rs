//! Requests wait for one sign-in, refresh or step-up; failures and loops end with an error.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::header;
use parking_lot::Mutex;
use portcullis_discovery::{BoxFuture, FetchRequest};
use serde_json::{Value, json};
use url::Url;

use super::server::{Client, settle};
use crate::{
    BridgeSettings,
    testing::{
        FetchFn, RESOURCE, Reply, ScratchDirectory, ScriptedUser, TOKEN_URL, clock, form,
        well_behaved,
    },
};
use portcullis_client::{
    AuthorizationRequest, Authorizer, AuthorizerSettings, Interaction, InteractionError,
    RedirectParameters, StartUrl, TokenManager, store::CredentialStore,
};

/// Returns a resource that responds with what `reject` returns, if anything, and a server that
/// numbers its tokens.
fn network(reject: impl Fn(&str, &Value) -> Option<Reply> + Send + Sync + 'static) -> Arc<FetchFn> {
    let tokens = AtomicUsize::new(0);
    FetchFn::new(move |request| match request.url.as_str() {
        TOKEN_URL => {
            let number = tokens.fetch_add(1, Ordering::Relaxed) + 1;
            Some(Reply::json(
                200,
                json!({
                    "access_token": format!("token-{number}"), "refresh_token": format!("refresh-{number}"),
                    "token_type": "Bearer", "expires_in": 300,
                }),
            ))
        }
        RESOURCE => {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            match token(request) {
                None => Some(Reply::challenge()),
                Some(token) => reject(&token, &body).or_else(|| Some(served(request, &body))),
            }
        }
        _ => well_behaved(request),
    })
}

/// Returns the access token of a request.
pub(super) fn token(request: &FetchRequest) -> Option<String> {
    let value = request
        .headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .unwrap();
    Some(value.strip_prefix("Bearer ").unwrap().to_owned())
}

/// The response of an MCP server with sessions.
pub(super) fn served(request: &FetchRequest, body: &Value) -> Reply {
    if request.method != http::Method::POST || body["id"].is_null() {
        return Reply::status(if request.method == http::Method::GET {
            405
        } else {
            202
        });
    }
    let result = json!({ "protocolVersion": "2025-11-25" });
    Reply::json(
        200,
        json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }),
    )
}

/// Connects a client to a bridge whose user signs in.
fn client(
    network: &Arc<FetchFn>,
    user: &Arc<impl Interaction + 'static>,
    store: CredentialStore,
) -> Client {
    let mut settings = AuthorizerSettings::default();
    settings.store = store;
    let authorizer = Authorizer::builder(user.clone())
        .fetch(network.clone())
        .clock(clock())
        .settings(settings)
        .build()
        .unwrap();
    let token_manager = TokenManager::new(StartUrl::parse(RESOURCE).unwrap(), Arc::new(authorizer));
    Client::with_token_manager(
        Arc::new(token_manager),
        network.clone(),
        BridgeSettings::default(),
    )
}

/// The same without stored tokens.
pub(super) fn in_memory(network: &Arc<FetchFn>, user: &Arc<impl Interaction + 'static>) -> Client {
    client(network, user, CredentialStore::in_memory())
}

/// Returns the grant types of all token requests.
fn grants(network: &FetchFn) -> Vec<String> {
    network
        .to(TOKEN_URL)
        .iter()
        .map(|request| form(request)["grant_type"].clone())
        .collect()
}

/// I5: concurrent instances ask the user once, and all of them get their responses.
#[tokio::test(start_paused = true)]
async fn concurrent_instances_sign_in_once() {
    let network = network(|_, _| None);
    let user = ScriptedUser::consents();
    let scratch = ScratchDirectory::new();
    let mut clients: Vec<_> = (0..4)
        .map(|_| {
            client(
                &network,
                &user,
                CredentialStore::in_directory(scratch.path()),
            )
        })
        .collect();
    for client in &mut clients {
        client
            .request(0, "initialize", json!({ "protocolVersion": "2025-11-25" }))
            .await;
    }
    for client in &mut clients {
        assert_eq!(client.next().await["id"], 0);
    }
    assert_eq!(user.visits(), 1);
    assert_eq!(grants(&network), ["authorization_code"]);
}

/// I5: a token that is rejected while requests are in progress is refreshed once, and all of them
/// are sent again.
#[tokio::test(start_paused = true)]
async fn requests_wait_for_one_refresh() {
    let withdrawn = Arc::new(Mutex::new(false));
    let is_withdrawn = withdrawn.clone();
    let network = network(move |token, _| {
        (*is_withdrawn.lock() && token == "token-1").then(|| {
            Reply::status(401).header(
                header::WWW_AUTHENTICATE,
                r#"Bearer error="invalid_token", scope="mcp:tools""#,
            )
        })
    });
    let user = ScriptedUser::consents();
    let mut client = in_memory(&network, &user);
    client.initialize().await;
    *withdrawn.lock() = true;
    for id in 1..=5 {
        client.request(id, "ping", json!({})).await;
    }
    for _ in 1..=5 {
        assert!(client.next().await["result"].is_object());
    }
    assert_eq!(user.visits(), 1);
    assert_eq!(grants(&network), ["authorization_code", "refresh_token"]);
    client.close().await;
}

/// I6: a request that needs more scopes gets them, once for all that need them.
#[tokio::test(start_paused = true)]
async fn requests_step_up() {
    let network = network(|token, body| {
        (token == "token-1" && body["method"] == "tools/call").then(|| {
            let challenge = r#"Bearer error="insufficient_scope", scope="mcp:tools mcp:admin""#;
            Reply::status(403).header(header::WWW_AUTHENTICATE, challenge)
        })
    });
    let user = ScriptedUser::consents();
    let mut client = in_memory(&network, &user);
    client.initialize().await;
    for id in 1..=3 {
        client
            .request(id, "tools/call", json!({ "name": "admin" }))
            .await;
    }
    for _ in 1..=3 {
        assert!(client.next().await["result"].is_object());
    }
    assert_eq!(user.visits(), 2);

    let scope = user
        .last_visit()
        .query_pairs()
        .find(|(name, _)| name == "scope")
        .unwrap()
        .1
        .into_owned();
    assert_eq!(scope, "mcp:admin mcp:tools");
}

/// I6: if the user denies further scopes, only the request that needs them gets an error.
#[tokio::test(start_paused = true)]
async fn a_denied_step_up_is_an_error_of_its_request() {
    let network = network(|_, body| {
        (body["method"] == "tools/call").then(|| {
            let challenge = r#"Bearer error="insufficient_scope", scope="mcp:tools mcp:admin""#;
            Reply::status(403).header(header::WWW_AUTHENTICATE, challenge)
        })
    });
    let user = ScriptedUser::consents();
    let mut client = in_memory(&network, &user);
    client.initialize().await;
    client
        .request(1, "tools/call", json!({ "name": "admin" }))
        .await;
    assert_eq!(client.reason().await, (1, "mcp.insufficient_scope".into()));
    client.request(2, "ping", json!({})).await;
    assert!(client.next().await["result"].is_object());
}

/// B2: if the resource cannot validate tokens at the moment, the request is delayed and the token
/// is kept.
#[tokio::test(start_paused = true)]
async fn a_token_survives_an_outage() {
    let outages = AtomicUsize::new(2);
    let network = network(move |_, body| {
        let is_out = body["method"] == "ping"
            && outages
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok();
        is_out.then(|| Reply::challenge().header(header::RETRY_AFTER, "5"))
    });
    let user = ScriptedUser::consents();
    let mut client = in_memory(&network, &user);
    client.initialize().await;
    client.request(1, "ping", json!({})).await;
    assert!(client.next().await["result"].is_object());
    assert_eq!(user.visits(), 1);
    assert_eq!(grants(&network).len(), 1);
}

/// B2: if the resource cannot validate tokens for longer, the request fails with that reason.
/// Another sign-in would not help.
#[tokio::test(start_paused = true)]
async fn a_long_outage_starts_no_sign_in() {
    for (seconds, attempts) in [("5", 3), ("60", 1)] {
        let network = network(move |_, body| {
            (body["method"] == "ping")
                .then(|| Reply::challenge().header(header::RETRY_AFTER, seconds))
        });
        let user = ScriptedUser::consents();
        let mut client = in_memory(&network, &user);
        client.initialize().await;
        client.request(1, "ping", json!({})).await;
        let response = client.next().await;
        assert_eq!(
            response["error"]["data"]["reason"], "mcp.unauthorized",
            "{response}"
        );
        assert!(
            response["error"]["message"]
                .as_str()
                .unwrap()
                .contains(&format!("{seconds} s")),
            "{response}"
        );
        let pings = network
            .to(RESOURCE)
            .into_iter()
            .filter(|request| request.body.windows(6).any(|part| part == b"\"ping\""));
        assert_eq!(pings.count(), attempts);
        assert_eq!(user.visits(), 1);
        assert_eq!(grants(&network), ["authorization_code"]);
    }
}

/// A failed sign-in is an error of every request that waits for it. The next request tries again.
#[tokio::test(start_paused = true)]
async fn a_failed_sign_in_is_reported() {
    let rejections = AtomicUsize::new(1);
    let user = ScriptedUser::responds(move |state| {
        let rejected = rejections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        let parameters = if rejected {
            "error=access_denied"
        } else {
            "code=c"
        };
        format!("{parameters}&state={state}&iss=https%3A%2F%2Fauth.example.com")
    });
    let network = network(|_, _| None);
    let mut client = in_memory(&network, &user);
    client.request(0, "initialize", json!({})).await;
    let response = client.next().await;
    assert_eq!(response["id"], 0);

    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("cannot get a token: "), "{message}");
    client.initialize().await;
    settle().await;
    assert_eq!(user.visits(), 2);
}

/// The server's own stream, which the client did not request, does not prompt the user for a
/// sign-in.
#[tokio::test(start_paused = true)]
async fn the_get_stream_does_not_ask_the_user() {
    let network = FetchFn::new(
        |request| match (request.url.as_str(), request.method.as_str()) {
            (RESOURCE, "GET") => Some(Reply::challenge()),
            (RESOURCE, _) if token(request).is_some() => Some(served(
                request,
                &serde_json::from_slice(&request.body).unwrap_or_default(),
            )),
            _ => well_behaved(request),
        },
    );
    let user = ScriptedUser::consents();
    let mut client = in_memory(&network, &user);
    client.initialize().await;
    client.request(1, "ping", json!({})).await;
    client.next().await;
    settle().await;
    assert!(
        network
            .to(RESOURCE)
            .iter()
            .filter(|request| request.method == http::Method::GET)
            .count()
            >= 1
    );
    assert_eq!(user.visits(), 1);
}

/// If the resource rejects every token, each request causes one sign-in and gets an error.
#[tokio::test(start_paused = true)]
async fn a_loop_of_401_ends() {
    let network = network(|_, body| (body["method"] == "tools/call").then(Reply::challenge));
    let user = ScriptedUser::consents();
    let mut client = in_memory(&network, &user);
    client.initialize().await;
    let calls = |network: &FetchFn| {
        let is_call =
            |request: &&FetchRequest| String::from_utf8_lossy(&request.body).contains("tools/call");
        network.to(RESOURCE).iter().filter(is_call).count()
    };
    for (id, before) in [(1, 0), (2, 2)] {
        client
            .request(id, "tools/call", json!({ "name": "t" }))
            .await;
        assert_eq!(client.reason().await, (id, "mcp.unauthorized".into()));
        assert!(calls(&network) <= before + 2, "{}", calls(&network));
    }
    assert!(grants(&network).len() <= 4, "{:?}", grants(&network));
    client.close().await;
}

/// I6: if the resource requires more scopes for every request, the bridge steps up twice.
#[tokio::test(start_paused = true)]
async fn a_loop_of_403_ends() {
    let wanted = AtomicUsize::new(0);
    let network = network(move |_, body| {
        (body["method"] == "tools/call").then(|| {
            let number = wanted.fetch_add(1, Ordering::Relaxed);
            let challenge =
                format!(r#"Bearer error="insufficient_scope", scope="mcp:tools more:{number}""#);
            Reply::status(403).header(header::WWW_AUTHENTICATE, &challenge)
        })
    });
    let user = ScriptedUser::consents();
    let mut client = in_memory(&network, &user);
    client.initialize().await;
    settle().await;
    let before = network.to(RESOURCE).len();
    client
        .request(1, "tools/call", json!({ "name": "t" }))
        .await;
    assert_eq!(client.reason().await, (1, "mcp.insufficient_scope".into()));
    assert_eq!(network.to(RESOURCE).len() - before, 3);
    assert_eq!(user.visits(), 3);

    client.request(2, "ping", json!({})).await;
    assert!(client.next().await["result"].is_object());
}

/// A user who never decides.
struct UndecidedUser(Url);

impl Interaction for UndecidedUser {
    fn redirect_uri(&self) -> &Url {
        &self.0
    }

    fn authorize<'a>(
        &'a self,
        _: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        Box::pin(std::future::pending())
    }
}

/// If the client closes its input during a sign-in, it gets a response, and the bridge ends.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_does_not_wait_for_the_user() {
    let network = network(|_, _| None);
    let user = Arc::new(UndecidedUser(
        Url::parse("http://127.0.0.1:7/callback").unwrap(),
    ));
    for ends in [true, false] {
        let mut client = in_memory(&network, &user);
        client.request(0, "initialize", json!({})).await;
        settle().await;
        let began = tokio::time::Instant::now();
        let rest = if ends {
            client.close().await
        } else {
            client.stop().await
        };
        assert_eq!(rest[0]["id"], 0);
        assert_eq!(rest[0]["error"]["data"]["reason"], "bridge.ended");
        assert!(
            began.elapsed() < std::time::Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
    let mut client = in_memory(&network, &user);
    client.request(0, "initialize", json!({})).await;
    settle().await;
    client.disconnect().await;
}

/// An endless challenge, and one without parameters, are errors of the request.
#[tokio::test(start_paused = true)]
async fn unusable_challenges() {
    for challenge in [
        "Basic realm=\"x\"".to_owned(),
        "Bearer ".to_owned() + &"a=b, ".repeat(5_000),
        "\t,".to_owned(),
    ] {
        let network = FetchFn::new(move |request| match request.url.as_str() {
            RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, &challenge)),
            _ => Some(Reply::status(404)),
        });
        let user = ScriptedUser::consents();
        let mut client = in_memory(&network, &user);
        client.request(0, "initialize", json!({})).await;
        let response = client.next().await;
        assert_eq!(response["error"]["code"], -32603, "{response}");
        assert_eq!(user.visits(), 0);
    }
}
