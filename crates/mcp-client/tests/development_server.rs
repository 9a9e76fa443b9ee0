//! The whole flow over real sockets, against the development authorization server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use portcullis_client::{Authorizer, AutoConsent, Interaction, LoopbackRedirect, StartUrl};
use portcullis_devidp::{DevIdp, DevIdpSettings};
use portcullis_discovery::{Fetch, FetchRequest, FetchSettings, HttpFetch, UrlPolicy};
use portcullis_mcp::Revision;
use portcullis_mcp_client::{McpClient, McpSettings};
use portcullis_metadata::{Issuer, SystemClock};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The heads of received requests, in order.
type Heads = Arc<Mutex<Vec<String>>>;

async fn development_server() -> Issuer {
    development_server_with(DevIdpSettings::default()).await
}

async fn development_server_with(settings: DevIdpSettings) -> Issuer {
    let settings = DevIdpSettings {
        auto_consent: true,
        ..settings
    };
    let server = DevIdp::bind(settings).await.unwrap();
    let issuer = server.issuer().clone();
    tokio::spawn(server.serve(std::future::pending()));
    issuer
}

/// Starts an MCP endpoint that accepts any token and returns `true` for every call.
async fn resource(issuer: &Issuer) -> (StartUrl, Heads) {
    resource_for("Bearer", issuer).await
}

/// As [`resource`], for tokens of this scheme.
async fn resource_for(scheme: &'static str, issuer: &Issuer) -> (StartUrl, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let start = StartUrl::parse(&format!("{base}/mcp")).unwrap();
    let heads = Heads::default();
    let seen = heads.clone();
    let issuer = issuer.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let head = respond(stream, scheme, &base, &issuer).await;
            seen.lock().push(head);
        }
    });
    (start, heads)
}

/// Reads one request and responds: metadata, a challenge, or the result of a call. Returns the
/// received request.
async fn respond(mut stream: TcpStream, scheme: &str, base: &str, issuer: &Issuer) -> String {
    let mut received = Vec::new();
    // A request has a head and at most one small JSON object.
    while !(received.ends_with(b"\r\n\r\n") && !received.starts_with(b"POST")
        || received.ends_with(b"}"))
    {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
    }
    let head = String::from_utf8(received).unwrap();
    let (status, extra, body) = if head.starts_with("GET /.well-known/") {
        let document =
            format!(r#"{{"resource":"{base}/mcp","authorization_servers":["{issuer}"]}}"#);
        ("200 OK", String::new(), document)
    } else if head
        .to_ascii_lowercase()
        .contains(&format!("authorization: {} ", scheme.to_ascii_lowercase()))
    {
        (
            "200 OK",
            String::new(),
            r#"{"jsonrpc":"2.0","id":1,"result":true}"#.to_owned(),
        )
    } else {
        let named = format!("{base}/.well-known/oauth-protected-resource/mcp");
        let challenge =
            format!("WWW-Authenticate: {scheme} realm=\"t\", resource_metadata=\"{named}\"\r\n");
        ("401 Unauthorized", challenge, String::new())
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n{extra}\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    head
}

fn client(start: &StartUrl, fetch: Arc<HttpFetch>, interaction: Arc<dyn Interaction>) -> McpClient {
    let clock = Arc::new(SystemClock::new());
    let authorizer = Authorizer::builder(interaction)
        .fetch(fetch.clone())
        .clock(clock)
        .build()
        .unwrap();
    let mut settings = McpSettings::default();
    settings.revision = Revision::V2026_07_28;
    McpClient::new(start.clone(), fetch, Some(Arc::new(authorizer)), settings)
}

/// I1, I9: a call without a token ends with the token in the header.
#[tokio::test]
async fn a_call_gets_itself_a_token() {
    let issuer = development_server().await;
    let (start, heads) = resource(&issuer).await;
    let fetch = Arc::new(HttpFetch::new(FetchSettings::default()).unwrap());
    let client = client(&start, fetch.clone(), Arc::new(AutoConsent::new(fetch)));
    assert_eq!(client.call("ping", None).await.unwrap(), true);

    let token = client.token().unwrap();
    assert_eq!(token.issuer(), &issuer);
    assert_eq!(token.resource().url(), start.url());
    let heads = heads.lock();
    assert_eq!(heads.len(), 3);
    assert!(heads[2].contains(token.access_token().secret()));
    assert!(heads.iter().all(|head| {
        !head
            .lines()
            .next()
            .unwrap()
            .contains(token.access_token().secret())
    }));
}

/// The same with a browser that follows the redirect to the port on loopback.
#[tokio::test]
async fn a_browser_brings_the_answer() {
    let issuer = development_server().await;
    let (start, _) = resource(&issuer).await;
    let fetch = Arc::new(HttpFetch::new(FetchSettings::default()).unwrap());
    let browser = fetch.clone();
    let redirect = LoopbackRedirect::bind(move |url| {
        let browser = browser.clone();
        let url = url.clone();
        tokio::spawn(async move {
            // From the one-time address to the authorization server, and back.
            let mut page = browser
                .fetch(FetchRequest::get(url, UrlPolicy::Operator))
                .await
                .unwrap();
            while let Some(location) = page.headers.get("location") {
                let location = location.to_str().unwrap().parse().unwrap();
                page = browser
                    .fetch(FetchRequest::get(location, UrlPolicy::Operator))
                    .await
                    .unwrap();
            }
            assert!(String::from_utf8_lossy(&page.body).contains("Access granted"));
        });
    })
    .await
    .unwrap();
    let client = client(&start, fetch, Arc::new(redirect));
    assert_eq!(client.call("ping", None).await.unwrap(), true);
}

/// I8: the development server takes our proofs, with and without a nonce, and binds the token to
/// their key; the token goes to the resource with a proof.
#[tokio::test]
async fn a_bound_token_comes_from_the_development_server() {
    for dpop_nonces in [false, true] {
        let issuer = development_server_with(DevIdpSettings {
            dpop_nonces,
            ..DevIdpSettings::default()
        })
        .await;
        let (start, heads) = resource_for("DPoP", &issuer).await;
        let fetch = Arc::new(HttpFetch::new(FetchSettings::default()).unwrap());
        let client = client(&start, fetch.clone(), Arc::new(AutoConsent::new(fetch)));
        assert_eq!(client.call("ping", None).await.unwrap(), true);
        let token = client.token().unwrap();
        assert!(token.is_dpop_bound());
        let payload = token
            .access_token()
            .secret()
            .split('.')
            .nth(1)
            .unwrap()
            .to_owned();
        let claims = URL_SAFE_NO_PAD.decode(payload).unwrap();
        assert!(String::from_utf8(claims).unwrap().contains("\"jkt\""));
        let heads = heads.lock();
        assert!(heads[2].to_ascii_lowercase().contains("\r\ndpop: "));
    }
}
