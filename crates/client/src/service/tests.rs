//! The tower middleware retries a rejected request once, and sends the token only to its resource.

use std::{collections::VecDeque, convert::Infallible};

use http::{HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use portcullis_metadata::AccessToken;

use super::*;
use crate::{
    Authorizer, AuthorizerSettings, BroaderResource, StartUrl,
    testing::{FetchFn, PRM_URL, RESOURCE, Reply, ScriptedUser, clock, prm, well_behaved},
};

const INSUFFICIENT_SCOPE: &str = r#"Bearer error="insufficient_scope", scope="more""#;

/// An HTTP client that responds by a script and records the `Authorization` headers.
#[derive(Clone)]
struct Client(Arc<Mutex<Script>>);

struct Script {
    responses: VecDeque<Response<()>>,
    /// The `Authorization` header of each request, or `none`.
    authorization_headers: Vec<String>,
}

impl Client {
    /// Each response has a status and a challenge, which can be empty.
    fn new(responses: impl IntoIterator<Item = (u16, &'static str)>) -> Self {
        let responses = responses.into_iter().map(|(status, challenge)| {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            if !challenge.is_empty() {
                response.headers_mut().insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static(challenge),
                );
            }
            response
        });
        let script = Script {
            responses: responses.collect(),
            authorization_headers: Vec::new(),
        };
        Self(Arc::new(Mutex::new(script)))
    }

    fn authorization_headers(&self) -> Vec<String> {
        self.0.lock().authorization_headers.clone()
    }
}

impl Service<Request<&'static str>> for Client {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<&'static str>) -> Self::Future {
        assert_eq!(*request.body(), "body");
        let mut script = self.0.lock();
        let header = request.headers().get(header::AUTHORIZATION);
        script.authorization_headers.push(
            header
                .map_or("none", |value| value.to_str().unwrap())
                .to_owned(),
        );
        std::future::ready(Ok(script.responses.pop_front().unwrap()))
    }
}

fn token_manager(user: &Arc<ScriptedUser>) -> Arc<TokenManager> {
    let network = FetchFn::new(well_behaved);
    let authorizer = Authorizer::builder(user.clone())
        .fetch(network)
        .clock(clock())
        .build()
        .unwrap();
    Arc::new(TokenManager::new(
        StartUrl::parse(RESOURCE).unwrap(),
        Arc::new(authorizer),
    ))
}

fn request(url: &str) -> Request<&'static str> {
    Request::post(url).body("body").unwrap()
}

/// I6: a request is sent again with its body after a 401 and after a 403.
#[tokio::test]
async fn a_rejected_request_is_retried() {
    let client = Client::new([(401, "Bearer"), (403, INSUFFICIENT_SCOPE), (200, "")]);
    let user = ScriptedUser::consents();
    let mut service = AuthorizeLayer::new(token_manager(&user)).layer(client.clone());
    assert_eq!(service.call(request(RESOURCE)).await.unwrap().status(), 200);
    assert_eq!(
        client.authorization_headers(),
        ["none", "Bearer hush", "Bearer hush"]
    );
    assert_eq!(user.visits(), 2);
}

/// A rejection that a new token does not resolve is returned as the response. A failed
/// authorization is an error.
#[tokio::test]
async fn a_repeated_rejection_is_returned() {
    let client = Client::new([(401, "Bearer"), (401, "Bearer"), (403, "")]);
    let user = ScriptedUser::consents();
    let mut service = AuthorizeLayer::new(token_manager(&user)).layer(client.clone());
    assert_eq!(service.call(request(RESOURCE)).await.unwrap().status(), 401);
    assert_eq!(service.call(request(RESOURCE)).await.unwrap().status(), 403);

    let denies = ScriptedUser::responds(|state| {
        format!("error=access_denied&state={state}&iss=https://auth.example.com")
    });
    let mut service =
        AuthorizeLayer::new(token_manager(&denies)).layer(Client::new([(401, "Bearer")]));
    assert_eq!(
        service.call(request(RESOURCE)).await.unwrap_err().code(),
        "redirect.denied"
    );
    assert_eq!(
        service.call(request("/relative")).await.unwrap_err().code(),
        "authorize.url"
    );
}

/// H4, I9: the token is sent only to the start URL, and neither to another path nor to another
/// origin.
#[tokio::test]
async fn the_token_is_sent_only_to_the_start_url() {
    let client = Client::new([(200, ""); 8]);
    let token_manager = TokenManager::with_access_token(
        StartUrl::parse(RESOURCE).unwrap(),
        AccessToken::new("hush"),
    );
    let mut service = AuthorizeLayer::new(Arc::new(token_manager)).layer(client.clone());
    service.call(request(RESOURCE)).await.unwrap();
    for other in [
        "https://evil.example/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com/",
        "https://mcp.example.com/other",
        "https://mcp.example.com/mcp/below",
        "https://mcp.example.com/mcp?query",
        "https://mcp.example.com:444/mcp",
    ] {
        service.call(request(other)).await.unwrap();
    }
    let sent = client.authorization_headers();
    assert_eq!(sent[0], "Bearer hush");
    assert_eq!(sent[1..], vec!["none".to_owned(); 7]);
}

/// H4: a token that was obtained below its resource is also sent to the resource's own URL.
#[tokio::test]
async fn the_token_is_sent_to_the_url_of_its_resource() {
    const ROOT: &str = "https://mcp.example.com/";
    let network = FetchFn::new(|request| match request.url.as_str() {
        PRM_URL => Some(Reply::json(200, prm(ROOT))),
        _ => well_behaved(request),
    });
    let settings = AuthorizerSettings {
        broader_resource: BroaderResource::Accepted,
        ..AuthorizerSettings::default()
    };
    let authorizer = Authorizer::builder(ScriptedUser::consents())
        .fetch(network)
        .clock(clock())
        .settings(settings)
        .build()
        .unwrap();
    let token_manager = Arc::new(TokenManager::new(
        StartUrl::parse(RESOURCE).unwrap(),
        Arc::new(authorizer),
    ));
    token_manager.sign_in().await.unwrap();

    let client = Client::new([(200, ""); 3]);
    let mut service = AuthorizeLayer::new(token_manager).layer(client.clone());
    for url in [RESOURCE, ROOT, "https://mcp.example.com/other"] {
        service.call(request(url)).await.unwrap();
    }
    assert_eq!(
        client.authorization_headers(),
        ["Bearer hush", "Bearer hush", "none"]
    );
}

/// H4: a 401 or 403 of another URL neither starts an authorization nor replaces the token.
#[tokio::test]
async fn challenges_of_other_urls_are_ignored() {
    let client = Client::new([(401, "Bearer"), (403, INSUFFICIENT_SCOPE)]);
    let user = ScriptedUser::consents();
    let mut service = AuthorizeLayer::new(token_manager(&user)).layer(client.clone());
    for status in [401, 403] {
        assert_eq!(
            service
                .call(request("https://mcp.example.com/other"))
                .await
                .unwrap()
                .status(),
            status
        );
    }
    assert_eq!(user.visits(), 0);
    assert_eq!(client.authorization_headers(), vec!["none".to_owned(); 2]);
}

/// A service with fixed readiness. It is never called.
#[derive(Clone)]
struct FixedReadiness(Poll<Result<(), &'static str>>);

impl Service<Request<()>> for FixedReadiness {
    type Response = Response<()>;
    type Error = &'static str;
    type Future = std::future::Ready<Result<Response<()>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.0
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        std::future::ready(Err("called"))
    }
}

/// The service has the readiness of the HTTP client.
#[test]
fn readiness_is_that_of_the_client() {
    let token_manager = token_manager(&ScriptedUser::consents());
    for (client, expected) in [
        (Poll::Pending, Poll::Pending),
        (
            Poll::Ready(Err("closed")),
            Poll::Ready(Err("authorize.inner")),
        ),
        (Poll::Ready(Ok(())), Poll::Ready(Ok(()))),
    ] {
        let mut service = AuthorizeLayer::new(token_manager.clone()).layer(FixedReadiness(client));
        let ready = service.poll_ready(&mut Context::from_waker(std::task::Waker::noop()));
        assert_eq!(ready.map_err(|error| error.code()), expected);
    }
}
