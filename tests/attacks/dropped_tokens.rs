//! A request that arrives after its token was dropped, while an introspection from before the drop still runs.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use portcullis_scenarios::{Administration, ChannelBody, Connection, Deployment, Request, Upstream, modern_request};
use serde_json::{Value, json};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// Returns the response to an introspection.
fn introspection(is_active: bool) -> Value {
    json!({ "active": is_active, "aud": Deployment::RESOURCE, "client_id": "editor", "sub": "alice", "scope": "mcp:tools" })
}

/// C11, D4: the second request does not get the response that the first one waits for.
#[tokio::test]
async fn an_introspection_from_before_a_drop_is_not_joined() {
    let (first_response, body) = ChannelBody::new();
    let (body, calls) = (Mutex::new(Some(body)), AtomicUsize::new(0));
    let issuer = Upstream::scripted(move |request| {
        let origin = format!("http://{}", request.header("host").unwrap());
        let is_token = request.target == "/introspect" && request.body.windows(12).any(|part| part == b"opaque-token");
        Some(match request.target.as_str() {
            "/introspect" if is_token && calls.fetch_add(1, Ordering::Relaxed) == 0 => {
                Upstream::streaming(200, &JSON, body.lock().unwrap().take().unwrap())
            }
            "/introspect" => Upstream::response(200, &JSON, introspection(false).to_string()),
            "/.well-known/oauth-authorization-server" => {
                let metadata = json!({ "issuer": origin, "introspection_endpoint": format!("{origin}/introspect") });
                Upstream::response(200, &JSON, metadata.to_string())
            }
            _ => Upstream::response(404, &[], ""),
        })
    })
    .await;
    let calls = || {
        let recorded = issuer.recorded().into_iter();
        recorded.filter(|request| request.body.windows(12).any(|part| part == b"opaque-token")).count()
    };
    let administration = Administration::default();
    let tables = format!(
        "[[issuer]]\nissuer = \"{}\"\nvalidate = \"introspection\"\nclient_id = \"portcullis\"",
        issuer.origin()
    );
    let deployment = administration.of(Deployment::builder(), &tables).start().await;
    let request = modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer("opaque-token");
    let mut first = Connection::open(deployment.portcullis.address()).await;
    first.write(&request.to_bytes()).await;
    while calls() == 0 {
        tokio::task::yield_now().await;
    }

    let drop_tokens = json!({ "issuer": issuer.origin() }).to_string();
    let drop_tokens = Request::post("/v1/tokens/drop", drop_tokens).bearer(Administration::TOKEN);
    let (status, dropped) = administration.send(drop_tokens).await;
    assert_eq!(status, 200, "{dropped}");
    let second = deployment.send(request).await;
    deployment.portcullis.assert_denied(&second, "token.inactive").await;
    assert_eq!(calls(), 2);

    first_response.send(Bytes::from(introspection(true).to_string())).unwrap();
    drop(first_response);
    assert_eq!(first.response().await.unwrap().status, 200, "it arrived before the drop");
    assert_eq!(deployment.upstream.count(), 1);
}
