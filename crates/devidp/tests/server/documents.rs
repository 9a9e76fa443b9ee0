//! Client ID metadata documents are fetched, checked and cached.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use portcullis_devidp::DocumentFetch;
use portcullis_discovery::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::Clock;
use portcullis_testkit::ScriptedFetch;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use crate::support::*;

const URL: &str = "https://client.example/oauth/client.json";

fn document(url: &str) -> Value {
    json!({
        "client_id": url, "client_name": "Weather Notes", "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none",
    })
}

/// A server with automatic consent, and the fetcher of its client documents.
async fn server() -> (Server, ScriptedFetch) {
    let web = ScriptedFetch::new();
    let fetch = Arc::new(web.clone());
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.client_documents = DocumentFetch::With(fetch);
    })
    .await;
    (server, web)
}

async fn request_code(server: &Server, client: &str) -> Response {
    server
        .authorize(&authorization_request(client, verifier().challenge()))
        .await
}

/// K1: a client with a metadata document obtains tokens and can refresh them.
#[tokio::test]
async fn a_document_describes_a_client() {
    let (server, web) = server().await;
    web.serve(URL, 200, document(URL).to_string());
    let verifier = verifier();
    let parameters = changed(
        &authorization_request(URL, verifier.challenge()),
        "scope",
        "mcp:tools offline_access",
    );
    let code = server
        .authorize(&parameters)
        .await
        .redirect_parameter("code")
        .unwrap();
    let response = server.token(&token_request(URL, &code, &verifier)).await;
    assert_eq!(claims(&response.text("access_token"))["client_id"], URL);

    let refreshed = server.refresh(URL, &response.text("refresh_token")).await;
    assert_eq!(refreshed.status, StatusCode::OK, "{}", refreshed.body);
    assert_eq!(web.hits(URL), 1, "the document is remembered");
    let fetched = &web.requests(URL)[0];
    assert_eq!(
        fetched.policy,
        UrlPolicy::Peer {
            loopback_http: true,
            private_addresses: false
        }
    );
    assert_eq!(fetched.max_body, 16 * 1024);
    assert_eq!(fetched.timeout, Duration::from_secs(5));

    let metadata = server
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert_eq!(metadata["client_id_metadata_document_supported"], true);
}

/// K1: a document at an http URL on loopback is fetched over a socket.
#[tokio::test]
async fn a_loopback_document_is_fetched() {
    // At all addresses of this machine, so that there is a document at the other one, too.
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/client.json");
    let body = Bytes::from(document(&url).to_string());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|_| {
                let response = http::Response::builder()
                    .header("content-type", "application/client+json; charset=utf-8");
                let response = response.body(Full::new(body.clone()));
                async move { response }
            });
            let _ = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
    });
    let server = Server::with_auto_consent().await;
    assert!(
        request_code(&server, &url)
            .await
            .redirect_parameter("code")
            .is_some()
    );

    let elsewhere = url.replace("127.0.0.1", "127.0.0.2");
    assert_eq!(
        request_code(&server, &elsewhere).await.status,
        StatusCode::BAD_REQUEST,
        "its client_id is another one"
    );
}

/// K1: an invalid or unavailable document is rejected and fetched again for the next request.
#[tokio::test]
async fn invalid_documents_are_rejected() {
    let (server, web) = server().await;
    let with = |name: &str, value: Value| {
        let mut document = document(URL);
        document[name] = value;
        document.to_string()
    };
    for body in [
        with("client_id", json!(format!("{URL}/"))),
        with(
            "client_id",
            json!("https://CLIENT.example/oauth/client.json"),
        ),
        with("client_secret", json!("hush")),
        with("token_endpoint_auth_method", json!("client_secret_basic")),
        with("token_endpoint_auth_method", json!("private_key_jwt")),
        with("redirect_uris", json!(["http://client.example/"])),
        with("redirect_uris", json!([])),
        with("grant_types", json!(["client_credentials"])),
        with("client_name", Value::Null),
        "[]".to_owned(),
        format!("{}{}", document(URL), " ".repeat(16 * 1024)),
    ] {
        web.serve(URL, 200, body.clone());
        let response = request_code(&server, URL).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(response.location(), None, "{body}");
        assert!(response.body.contains("metadata document cannot be used"));
        assert!(response.body.contains("For development"));
    }
    for status in [201, 302, 404, 500] {
        web.serve(URL, status, document(URL).to_string());
        assert_eq!(
            request_code(&server, URL).await.status,
            StatusCode::BAD_REQUEST,
            "{status}"
        );
    }
    web.respond(URL, |_| {
        Ok(FetchResponse {
            status: StatusCode::OK,
            headers: Default::default(),
            body: document(URL).to_string().into(),
            sent: Default::default(),
        })
    });
    assert_eq!(
        request_code(&server, URL).await.status,
        StatusCode::BAD_REQUEST,
        "no content type"
    );

    web.fail(URL);
    assert_eq!(
        request_code(&server, URL).await.status,
        StatusCode::BAD_REQUEST
    );
    web.serve(URL, 200, document(URL).to_string());
    assert!(
        request_code(&server, URL)
            .await
            .redirect_parameter("code")
            .is_some(),
        "no failure is remembered"
    );
}

/// Invalid URLs are unknown clients, and nothing is fetched.
#[tokio::test]
async fn invalid_identifiers_are_not_fetched() {
    let (server, web) = server().await;
    for id in [
        "http://client.example/client.json",
        "https://client.example",
        "https://client.example/",
        "https://client.example/a/../client.json",
        "https://client.example/client.json#a",
        "https://client.example/client.json?a=b",
        "https://user@client.example/client.json",
        "ftp://client.example/client.json",
    ] {
        assert_eq!(
            request_code(&server, id).await.status,
            StatusCode::BAD_REQUEST,
            "{id}"
        );
    }
    for rejected in [
        "https://10.0.0.1/client.json",
        "https://169.254.169.254/client.json",
        "https://[fd00::1]/client.json",
    ] {
        assert_eq!(
            request_code(&server, rejected).await.status,
            StatusCode::BAD_REQUEST,
            "{rejected}"
        );
    }
    assert!(web.urls().is_empty());
}

/// The redirect URI must be exactly one of the document's.
#[tokio::test]
async fn the_redirect_uri_must_be_in_the_document() {
    let (server, web) = server().await;
    web.serve(URL, 200, document(URL).to_string());
    let verifier = verifier();
    let parameters = authorization_request(URL, verifier.challenge());
    assert!(
        server
            .authorize(&parameters)
            .await
            .redirect_parameter("code")
            .is_some()
    );
    for other in [
        "http://127.0.0.1:4321/other",
        "https://client.example/callback",
    ] {
        let response = server
            .authorize(&changed(&parameters, "redirect_uri", other))
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{other}");
        assert_eq!(response.location(), None, "{other}");
    }
}

/// K1: a document is cached for its `max-age`, within bounds.
#[tokio::test]
async fn a_document_is_fetched_again_when_it_expires() {
    for (cache_control, seconds) in [
        (None, 60),
        (Some("max-age=10"), 10),
        (Some("public, Max-Age=7200"), 300),
        (Some("max-age=rubbish"), 60),
        (Some("no-store"), 0),
        (Some("max-age=10, no-cache"), 0),
    ] {
        let (server, web) = server().await;
        web.respond(URL, move |_| {
            let json = HeaderValue::from_static("application/json");
            let mut headers = http::HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
            headers.extend(
                cache_control.map(|value| (header::CACHE_CONTROL, HeaderValue::from_static(value))),
            );
            Ok(FetchResponse {
                status: StatusCode::OK,
                headers,
                body: document(URL).to_string().into(),
                sent: Default::default(),
            })
        });
        request_code(&server, URL).await;
        if seconds > 0 {
            server.clock.advance(Duration::from_secs(seconds - 1));
            assert!(
                request_code(&server, URL)
                    .await
                    .redirect_parameter("code")
                    .is_some()
            );
            assert_eq!(web.hits(URL), 1, "{cache_control:?}");
            server.clock.advance(Duration::from_secs(1));
        }
        request_code(&server, URL).await;
        assert_eq!(web.hits(URL), 2, "{cache_control:?}");
    }
}

/// A client authenticates with the keys in its document.
#[tokio::test]
async fn a_document_can_contain_keys() {
    let (server, web) = server().await;
    let key = SigningKey::generate(Algorithm::Es256, "one").unwrap();
    let mut document = document(URL);
    document["token_endpoint_auth_method"] = json!("private_key_jwt");
    document["jwks"] = json!({ "keys": [key.public_jwk()] });
    web.serve(URL, 200, document.to_string());
    let verifier = verifier();
    let code = server.code(URL, &verifier).await;
    assert_eq!(
        server
            .token(&token_request(URL, &code, &verifier))
            .await
            .error(),
        "invalid_client"
    );

    let now = server.clock.now().as_secs();
    let claims =
        json!({ "iss": URL, "sub": URL, "aud": server.issuer, "exp": now + 60, "jti": "1" });
    let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
    let assertion_type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    let proof = [
        ("client_assertion_type", assertion_type),
        ("client_assertion", &*assertion),
    ];
    let response = server
        .token(&[&token_request(URL, &code, &verifier)[..], &proof].concat())
        .await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
}

/// The consent page displays the URL of the document next to the name.
#[tokio::test]
async fn the_consent_page_names_the_document() {
    let web = ScriptedFetch::new();
    web.serve(URL, 200, document(URL).to_string());
    let server =
        Server::start(|settings| settings.client_documents = DocumentFetch::With(Arc::new(web)))
            .await;
    let page = request_code(&server, URL).await;
    assert!(
        page.body.contains(&format!("<code>{URL}</code>")),
        "{}",
        page.body
    );
    assert!(page.body.contains("Weather Notes"), "{}", page.body);
}

/// A fetcher that never returns, and counts its fetches.
struct HangingFetch(Arc<AtomicUsize>);

impl Fetch for HangingFetch {
    fn fetch(&self, _: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

/// At most eight documents are fetched at once. A further client is not told that it is invalid.
#[tokio::test]
async fn concurrent_fetches_are_limited() {
    let fetches = Arc::<AtomicUsize>::default();
    let hanging = Arc::new(HangingFetch(Arc::clone(&fetches)));
    let server = Server::start(|settings| settings.client_documents = DocumentFetch::With(hanging));
    let server = Arc::new(server.await);
    let mut waiting = JoinSet::new();
    for _ in 0..8 {
        let server = Arc::clone(&server);
        waiting.spawn(async move { request_code(&server, URL).await });
    }
    let started = async {
        while fetches.load(Ordering::Relaxed) < 8 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), started)
        .await
        .expect("eight fetches start");
    let refused = server.refresh(URL, "x").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(&*refused.error(), "temporarily_unavailable");
    assert_eq!(fetches.load(Ordering::Relaxed), 8);
}

/// Documents can be disabled.
#[tokio::test]
async fn documents_can_be_disabled() {
    let server = Server::start(|settings| settings.client_documents = DocumentFetch::Off).await;
    let page = request_code(&server, URL).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.body.contains("not registered here"), "{}", page.body);
    let metadata = server
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert!(
        metadata
            .get("client_id_metadata_document_supported")
            .is_none()
    );
}
