//! A token of another client opens the session again, because servers bind a session to its client.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use http::{HeaderName, header};
use portcullis_discovery::FetchRequest;
use serde_json::{Value, json};

use super::{
    authorization::{in_memory, served, token},
    server::settle,
};
use crate::testing::{
    FetchFn, REGISTRATION_URL, RESOURCE, Reply, ScriptedUser, TOKEN_URL, form, well_behaved,
};

/// E7, I6: a server binds a session to the client that opened it. If the token with more scopes
/// belongs to another client, because the authorization server has forgotten the first one, the
/// session is opened again with its subscriptions.
#[tokio::test(start_paused = true)]
async fn a_step_up_to_another_client_opens_the_session_again() {
    const NO_SESSION: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"},"id":null}"#;
    for foreign_session in [Reply::status(404), Reply::json(400, NO_SESSION)] {
        let is_forgotten = Arc::new(AtomicBool::new(false));
        let network = sessions_of_clients(foreign_session, is_forgotten.clone());
        let user = ScriptedUser::consents();
        let mut client = in_memory(&network, &user);
        client.initialize().await;
        client
            .request(1, "resources/subscribe", json!({ "uri": "a:1" }))
            .await;
        assert!(client.next().await["result"].is_object());

        is_forgotten.store(true, Ordering::Relaxed);
        client
            .request(2, "tools/call", json!({ "name": "admin" }))
            .await;
        assert!(client.next().await["result"].is_object());
        settle().await;
        let expected = [
            ("tools/call", Some("c1")),
            ("initialize", None),
            ("notifications/initialized", Some("c2")),
            ("resources/subscribe", Some("c2")),
            ("tools/call", Some("c2")),
        ];
        let expected =
            expected.map(|(method, session)| (method.to_owned(), session.map(str::to_owned)));
        assert_eq!(messages_of(&network, "c2"), expected);

        assert!(client.close().await.is_empty());
        let ended = network.to(RESOURCE).pop().unwrap();
        assert_eq!(ended.method.as_str(), "DELETE");
        assert_eq!(ended.headers["mcp-session-id"], "c2");
    }
}

/// A server whose sessions have the names of their clients, `c1` and `c2`, which are also their
/// tokens. The first client needs more scopes for a tool, and cannot get them once it is forgotten.
/// `foreign_session` is the response to a request in the session of another client.
fn sessions_of_clients(foreign_session: Reply, is_forgotten: Arc<AtomicBool>) -> Arc<FetchFn> {
    let clients = AtomicUsize::new(0);
    FetchFn::new(move |request| match request.url.as_str() {
        REGISTRATION_URL => {
            let number = clients.fetch_add(1, Ordering::Relaxed) + 1;
            Some(Reply::json(
                201,
                json!({ "client_id": format!("c{number}") }),
            ))
        }
        TOKEN_URL => {
            let client = &form(request)["client_id"];
            if client == "c1" && is_forgotten.load(Ordering::Relaxed) {
                return Some(Reply::json(401, json!({ "error": "invalid_client" })));
            }
            Some(Reply::json(
                200,
                json!({ "access_token": client, "token_type": "Bearer", "expires_in": 300 }),
            ))
        }
        RESOURCE => {
            let Some(client) = token(request) else {
                return Some(Reply::challenge());
            };
            let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            Some(match (message["method"].as_str(), session(request)) {
                (Some("initialize"), _) => served(request, &message)
                    .header(HeaderName::from_static("mcp-session-id"), &client),
                (Some("tools/call"), _) if client == "c1" => {
                    let challenge =
                        r#"Bearer error="insufficient_scope", scope="mcp:tools mcp:admin""#;
                    Reply::status(403).header(header::WWW_AUTHENTICATE, challenge)
                }
                (_, Some(owner)) if owner == client => served(request, &message),
                _ => foreign_session.clone(),
            })
        }
        _ => well_behaved(request),
    })
}

/// Returns the methods and sessions of the messages with this token.
fn messages_of(network: &FetchFn, access_token: &str) -> Vec<(String, Option<String>)> {
    let requests = network
        .to(RESOURCE)
        .into_iter()
        .filter(|request| request.method == http::Method::POST);
    let of_client = requests.filter(|request| token(request).as_deref() == Some(access_token));
    of_client
        .map(|request| {
            let message: Value = serde_json::from_slice(&request.body).unwrap();
            (
                message["method"].as_str().unwrap().to_owned(),
                session(&request).map(str::to_owned),
            )
        })
        .collect()
}

fn session(request: &FetchRequest) -> Option<&str> {
    request
        .headers
        .get("mcp-session-id")
        .map(|session| session.to_str().unwrap())
}
