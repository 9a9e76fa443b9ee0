//! A request that arrives after its token was dropped, while an introspection from before the drop
//! still runs.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use portcullis_scenarios::{
    Administration, ChannelBody, Connection, Deployment, RecordedRequest, Request, Upstream,
    modern_request,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// An introspection endpoint that holds its first response, and finds every token inactive
/// afterwards.
struct Endpoint {
    server: Upstream,
    first_response: UnboundedSender<Bytes>,
}

impl Endpoint {
    async fn start() -> Self {
        let (first_response, body) = ChannelBody::new();
        let (body, calls) = (Mutex::new(Some(body)), AtomicUsize::new(0));
        let server = Upstream::scripted(move |request| {
            let origin = format!("http://{}", request.header("host").unwrap());
            Some(match request.target.as_str() {
                "/introspect" if is_call(request) && calls.fetch_add(1, Ordering::Relaxed) == 0 => {
                    Upstream::streaming(200, &JSON, body.lock().take().unwrap())
                }
                "/introspect" => Upstream::response(200, &JSON, introspection(false).to_string()),
                "/.well-known/oauth-authorization-server" => {
                    let metadata =
                        json!({ "issuer": origin, "introspection_endpoint": format!("{origin}/introspect") });
                    Upstream::response(200, &JSON, metadata.to_string())
                }
                _ => Upstream::response(404, &[], ""),
            })
        })
        .await;
        Self {
            server,
            first_response,
        }
    }

    /// Returns the number of introspections.
    fn calls(&self) -> usize {
        self.server
            .recorded()
            .iter()
            .filter(|request| is_call(request))
            .count()
    }
}

/// Returns whether a request is about a token, and not to find out whether the endpoint accepts
/// this client.
fn is_call(request: &RecordedRequest) -> bool {
    request.target == "/introspect"
        && !String::from_utf8_lossy(&request.body).contains("portcullis-probe-")
}

/// Returns the response to an introspection.
fn introspection(is_active: bool) -> Value {
    json!({ "active": is_active, "aud": Deployment::RESOURCE, "client_id": "editor", "sub": "alice", "scope": "mcp:tools" })
}

/// C11, D4: the second request does not get the response that the first one waits for.
#[tokio::test]
async fn an_introspection_from_before_a_drop_is_not_joined() {
    for is_signed in [false, true] {
        let endpoint = Endpoint::start().await;
        let origin = endpoint.server.origin();
        let administration = Administration::default();
        let (builder, tables) = if is_signed {
            let endpoint = format!(
                "introspection_endpoint = \"{origin}/introspect\"\nclient_id = \"portcullis\""
            );
            let settings = format!("validate = \"jwt+introspection\"\n{endpoint}");
            (Deployment::builder().issuer(settings), String::new())
        } else {
            let settings = "validate = \"introspection\"\nclient_id = \"portcullis\"";
            (
                Deployment::builder(),
                format!("[[issuer]]\nissuer = \"{origin}\"\n{settings}"),
            )
        };
        let deployment = administration.of(builder, &tables).start().await;
        let (token, issuer) = if is_signed {
            (
                deployment.good_token(),
                deployment.test_issuer.issuer().as_str().to_owned(),
            )
        } else {
            ("opaque-token".to_owned(), origin)
        };
        let request = modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(&token);
        let mut first = Connection::open(deployment.portcullis.address()).await;
        first.write(&request.to_bytes()).await;
        while endpoint.calls() == 0 {
            tokio::task::yield_now().await;
        }

        let drop_tokens = json!({ "issuer": issuer }).to_string();
        let drop_tokens =
            Request::post("/v1/tokens/drop", drop_tokens).bearer(Administration::TOKEN);
        let (status, dropped) = administration.send(drop_tokens).await;
        assert_eq!(status, 200, "{dropped}");
        let second = deployment.send(request).await;
        deployment
            .portcullis
            .assert_denied(&second, "token.inactive")
            .await;
        assert_eq!(endpoint.calls(), 2);

        let Endpoint { first_response, .. } = endpoint;
        first_response
            .send(Bytes::from(introspection(true).to_string()))
            .unwrap();
        drop(first_response);
        assert_eq!(
            first.response().await.unwrap().status,
            200,
            "it arrived before the drop"
        );
        assert_eq!(deployment.upstream.count(), 1);
    }
}
