//! Attacks with client ID metadata documents (DO).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use portcullis_discovery::FetchResponse;
use portcullis_metadata::authorization::PkceVerifier;
use portcullis_testkit::{ScriptedFetch, TestIssuer};
use serde_json::{Value, json};

use crate::{
    log::Log,
    support::{Browser, Client, Setup, hidden, json_response, param, text_of},
};

pub(crate) const DOCUMENT: &str = "https://client.example/client.json";
pub(crate) const KEYS: &str = "https://client.example/jwks.json";
const LOOPBACK: &str = "http://127.0.0.1:4321/callback";
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn document() -> Value {
    json!({
        "client_id": DOCUMENT, "client_name": "Document client",
        "redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "none",
    })
}

pub(crate) fn document_client() -> Client {
    Client {
        id: DOCUMENT.into(),
        redirect_uri: LOOPBACK.into(),
        verifier: PkceVerifier::generate().unwrap(),
    }
}

/// Serves a document that may be cached for so many seconds.
pub(crate) fn serve(network: &ScriptedFetch, document: &Value, max_age: u64) {
    let mut response = json_response(StatusCode::OK, document);
    let cache = HeaderValue::try_from(format!("max-age={max_age}")).unwrap();
    response.headers.insert(header::CACHE_CONTROL, cache);
    network.respond(DOCUMENT, move |_| Ok(response.clone()));
}

pub(crate) async fn ask(setup: &Setup) -> Response<Bytes> {
    let client = document_client();
    Browser::new(setup).authorize(&client.request()).await
}

pub(crate) fn assert_refused(page: &Response<Bytes>, attack: &str) {
    assert_eq!(page.status(), StatusCode::BAD_REQUEST, "{attack}");
    assert!(!page.headers().contains_key("location"), "{attack}");
}

/// DO1: a document at a private address, or with keys there, is not fetched.
#[tokio::test]
async fn documents_at_private_addresses() {
    for url in [
        "https://127.0.0.1/client.json",
        "https://localhost/client.json",
        "https://10.0.0.1/client.json",
        "https://192.168.1.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/client.json",
        "https://224.0.0.1/client.json",
        "https://192.0.2.1/client.json",
        "https://[::1]/client.json",
        "https://[fd00::1]/client.json",
        "https://[::ffff:10.0.0.1]/client.json",
        "https://[64:ff9b::a00:1]/client.json",
        "https://[2002:a00:1::]/client.json",
        "https://0x7f000001/client.json",
        "https://2130706433/client.json",
    ] {
        let setup = Setup::new();
        let mut found = document();
        found["client_id"] = json!(url);
        setup.network.serve(url, 200, found.to_string());
        let mut client = document_client();
        client.id = url.into();
        let page = Browser::new(&setup).authorize(&client.request()).await;
        assert_refused(&page, url);

        let setup = Setup::new();
        let mut with_keys = document();
        with_keys["token_endpoint_auth_method"] = json!("private_key_jwt");
        with_keys["jwks_uri"] = json!(url);
        serve(&setup.network, &with_keys, 3600);
        let keys = TestIssuer::new("https://keys.example").jwks_json();
        setup.network.serve(url, 200, keys);
        assert_refused(&ask(&setup).await, url);
    }
}

/// DO2: a redirect is not followed, and the document must name its own URL.
#[tokio::test]
async fn documents_that_lead_elsewhere() {
    let setup = Setup::new();
    let elsewhere = "https://other.example/client.json";
    setup.network.serve(elsewhere, 200, document().to_string());
    setup.network.respond(DOCUMENT, move |_| {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_static(elsewhere));
        Ok(FetchResponse {
            status: StatusCode::FOUND,
            headers,
            body: document().to_string().into(),
            sent: Default::default(),
        })
    });
    assert_refused(&ask(&setup).await, "redirect");
    assert_eq!(setup.network.hits(elsewhere), 0);

    for other in [
        json!("https://client.example/other.json"),
        json!("https://CLIENT.example/client.json"),
        json!("https://client.example:443/client.json"),
        json!("https://client.example/client.json#"),
        json!(null),
        json!([DOCUMENT]),
    ] {
        let setup = Setup::new();
        let mut found = document();
        found["client_id"] = other.clone();
        serve(&setup.network, &found, 3600);
        assert_refused(&ask(&setup).await, &other.to_string());
    }
}

/// DO2: only some URLs identify a client.
#[tokio::test]
async fn identifiers_that_are_similar_to_urls() {
    for id in [
        "http://client.example/client.json",
        "https://client.example",
        "https://client.example/",
        "https://user@client.example/client.json",
        "https://client.example/client.json#fragment",
        "https://client.example/a/../client.json",
        "https://client.example/./client.json",
        "https://client.example/%2e%2e/client.json",
        "https:client.example/client.json",
        "https://client.example\\client.json",
        "ftp://client.example/client.json",
    ] {
        let setup = Setup::new();
        let mut client = document_client();
        client.id = id.into();
        let page = Browser::new(&setup).authorize(&client.request()).await;
        assert_refused(&page, id);
        assert!(setup.network.urls().is_empty(), "{id}");
    }
}

/// The query of a document's URL, which is part of the identifier, is not in the log.
#[tokio::test]
async fn a_query_is_not_logged() {
    let (log, _guard) = Log::here();
    let setup = Setup::new();
    let mut client = document_client();
    client.id = format!("{DOCUMENT}?key=hunter2");
    let mut browser = Browser::new(&setup);
    let refused = browser.authorize(&client.request()).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let mut found = document();
    found["client_id"] = json!(client.id);
    setup.network.serve(&client.id, 200, found.to_string());
    *setup.provider.sign.lock() = Box::new(|_| String::new());
    let target = browser.sign_in(&client).await;
    assert!(param(&target, "error").is_some());
    let lines = log.lines().join("\n");
    assert_eq!(lines.matches(DOCUMENT).count(), 2, "{lines}");
    assert!(!lines.contains("hunter2"), "{lines}");
}

/// DO4: a document proves nothing but its host, which the page shows first.
#[tokio::test]
async fn a_document_that_lies_about_its_owner() {
    let setup = Setup::new();
    let mut found = document();
    found["client_name"] = json!("Claude");
    found["client_uri"] = json!("https://claude.ai");
    found["logo_uri"] = json!("https://claude.ai/logo.png");
    found["redirect_uris"] = json!([LOOPBACK, "https://client.example/callback"]);
    serve(&setup.network, &found, 3600);
    let page = ask(&setup).await;
    let text = text_of(&page);
    let heading = text.split("<h1>").nth(1).unwrap();
    assert!(heading.starts_with(r#"<span class="host">client.example<"#));
    assert!(!text.contains("claude.ai"));
    // The host of the document is not thereby a redirect host.
    let mut client = document_client();
    client.redirect_uri = "https://client.example/callback".into();
    let page = Browser::new(&setup).authorize(&client.request()).await;
    assert_refused(&page, "redirect host");
}

/// DO5: the page warns of other programs on this computer.
#[tokio::test]
async fn a_foreign_document_with_an_own_port() {
    let setup = Setup::new();
    serve(&setup.network, &document(), 3600);
    let mut client = document_client();
    client.redirect_uri = "http://127.0.0.1:9999/callback".into();
    let page = Browser::new(&setup).authorize(&client.request()).await;
    let text = text_of(&page);
    assert!(text.contains("Any program on this computer could be asking in the name of"));
    assert!(text.contains("127.0.0.1:9999"));
    assert!(!text.contains(r#"name="remember""#));
}

/// DO6: a document that changes while a user signs in changes nothing for this sign-in.
#[tokio::test]
async fn a_document_that_changes_after_the_consent() {
    let setup = Setup::new();
    serve(&setup.network, &document(), 0);
    let client = document_client();
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let mut changed = document();
    changed["redirect_uris"] = json!(["http://127.0.0.1:4321/attacker"]);
    serve(&setup.network, &changed, 0);
    setup.pass(HOUR / 10);
    let url = browser.approve(&page).await;
    let target = crate::support::location(&browser.return_from(&url).await);
    assert!(target.as_str().starts_with(LOOPBACK));
    let page = browser.authorize(&client.request()).await;
    assert_refused(&page, "the old redirect URI");
}

/// DO8: a secret in a public document is none.
#[tokio::test]
async fn documents_with_a_shared_secret() {
    for (member, value) in [
        ("client_secret", json!("secret")),
        ("client_secret_expires_at", json!(0)),
        ("token_endpoint_auth_method", json!("client_secret_basic")),
        ("token_endpoint_auth_method", json!("client_secret_post")),
        ("token_endpoint_auth_method", json!("client_secret_jwt")),
        ("token_endpoint_auth_method", json!("tls_client_auth")),
    ] {
        let setup = Setup::new();
        let mut found = document();
        found[member] = value.clone();
        serve(&setup.network, &found, 3600);
        assert_refused(&ask(&setup).await, member);
    }
}

/// CO1: a client with a document needs the consent of the user as any other.
#[tokio::test]
async fn a_document_does_not_replace_consent() {
    let setup = Setup::new();
    serve(&setup.network, &document(), 3600);
    for _ in 0..2 {
        let page = ask(&setup).await;
        assert_eq!(page.status(), StatusCode::OK);
        assert!(!hidden(&page, "request").is_empty());
        setup.sign_in(&document_client()).await;
    }
}
