//! Attacks with client ID metadata documents (DO).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use portcullis_discovery::FetchResponse;
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{Clock as _, authorization::PkceVerifier};
use portcullis_state_store::records::Table;
use portcullis_testkit::{ScriptedFetch, TestIssuer};
use serde_json::{Value, json};

use crate::support::{
    Browser, Client, ISSUER, Setup, hidden, json_of, json_response, param, text_of,
};

const DOCUMENT: &str = "https://client.example/client.json";
const KEYS: &str = "https://client.example/jwks.json";
const LOOPBACK: &str = "http://127.0.0.1:4321/callback";
const HOUR: Duration = Duration::from_secs(3600);

/// Breaks the network.
type Outage = Box<dyn Fn(&ScriptedFetch)>;
/// Changes the claims of an assertion.
type Change = Box<dyn Fn(&mut Value)>;

fn document() -> Value {
    json!({
        "client_id": DOCUMENT, "client_name": "Document client",
        "redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "none",
    })
}

fn document_client() -> Client {
    Client {
        id: DOCUMENT.into(),
        redirect_uri: LOOPBACK.into(),
        verifier: PkceVerifier::generate().unwrap(),
    }
}

/// Serves a document that may be cached for so many seconds.
fn serve(network: &ScriptedFetch, document: &Value, max_age: u64) {
    let mut response = json_response(StatusCode::OK, document);
    let cache = HeaderValue::try_from(format!("max-age={max_age}")).unwrap();
    response.headers.insert(header::CACHE_CONTROL, cache);
    network.respond(DOCUMENT, move |_| Ok(response.clone()));
}

async fn ask(setup: &Setup) -> Response<Bytes> {
    let client = document_client();
    Browser::new(setup).authorize(&client.request()).await
}

fn assert_refused(page: &Response<Bytes>, attack: &str) {
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

/// DO3: documents that are large, deep, ambiguous or of another type are refused.
#[tokio::test]
async fn documents_that_exhaust_or_confuse() {
    let long = |length: usize| {
        let mut found = document();
        found["software_id"] = json!("");
        let missing = length - found.to_string().len();
        found["software_id"] = json!("a".repeat(missing));
        found.to_string()
    };
    let with = |member: &str| {
        document()
            .to_string()
            .replacen('{', &format!("{{{member},"), 1)
    };
    let deep = format!("\"a\":{}{}", "[".repeat(32), "]".repeat(32));
    for (body, is_valid) in [
        (long(5 * 1024), true),
        (long(5 * 1024 + 1), false),
        (with(&deep), false),
        (with("\"client_name\":\"Claude\""), false),
        (
            with("\"client_id\":\"https://client.example/client.json\""),
            false,
        ),
        (String::new(), false),
        ("[]".to_owned(), false),
    ] {
        let setup = Setup::new();
        setup.network.serve(DOCUMENT, 200, body.clone());
        let status = ask(&setup).await.status();
        assert_eq!(status == StatusCode::OK, is_valid, "{body}");
    }
    let setup = Setup::new();
    setup.network.serve(DOCUMENT, 404, document().to_string());
    assert_refused(&ask(&setup).await, "404");
    setup.network.time_out(DOCUMENT);
    assert_refused(&ask(&setup).await, "timeout");
}

/// DO3: many requests for one document cause one fetch, and an invalid one is not remembered.
#[tokio::test]
async fn many_requests_for_one_document() {
    let setup = Arc::new(Setup::new());
    serve(&setup.network, &document(), 3600);
    let gate = setup.network.hang(DOCUMENT);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let setup = Arc::clone(&setup);
            tokio::spawn(async move { ask(&setup).await.status() })
        })
        .collect();
    tokio::task::yield_now().await;
    gate.release();
    for task in tasks {
        assert_eq!(task.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(setup.network.hits(DOCUMENT), 1);
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

/// DO7: documents are cached within bounds, and errors are not cached.
#[tokio::test]
async fn documents_that_are_always_or_never_cached() {
    for (max_age, minutes) in [(0, 5), (600, 10), (u64::MAX, 24 * 60)] {
        let setup = Setup::new();
        serve(&setup.network, &document(), max_age);
        ask(&setup).await;
        setup.pass(Duration::from_secs(minutes * 60 - 1));
        ask(&setup).await;
        assert_eq!(setup.network.hits(DOCUMENT), 1, "{max_age}");
        setup.pass(Duration::from_secs(1));
        ask(&setup).await;
        assert_eq!(setup.network.hits(DOCUMENT), 2, "{max_age}");
    }
    let setup = Setup::new();
    setup.network.serve(DOCUMENT, 500, "");
    assert_refused(&ask(&setup).await, "500");
    serve(&setup.network, &document(), 3600);
    assert_eq!(ask(&setup).await.status(), StatusCode::OK);
}

/// DO7: an outage of the client's host ends no sign-in.
#[tokio::test]
async fn the_host_of_the_client_is_down() {
    let setup = Setup::with(|settings| {
        settings.lifetimes.recheck = settings.lifetimes.grant;
    });
    let mut with_keys = document();
    let key = SigningKey::generate(Algorithm::Es256, "k").unwrap();
    with_keys["token_endpoint_auth_method"] = json!("private_key_jwt");
    with_keys["jwks_uri"] = json!(KEYS);
    serve(&setup.network, &with_keys, 3600);
    setup.network.serve(KEYS, 200, TestIssuer::jwks_of(&[&key]));
    let client = document_client();
    let mut browser = Browser::new(&setup);
    let code = param(&browser.sign_in(&client).await, "code").unwrap();
    let mut fields = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code),
        ("code_verifier", client.verifier.secret().to_owned()),
    ];
    let response = authenticated(&setup, &key, ISSUER, "1", &fields).await;
    assert_eq!(response.status(), StatusCode::OK, "{response:?}");
    let mut refresh_token = json_of(&response)["refresh_token"].clone();

    let ok = json_response(StatusCode::OK, &with_keys);
    let outages: [(&str, Outage); 4] = [
        ("connection", Box::new(|network| network.fail(DOCUMENT))),
        ("timeout", Box::new(|network| network.time_out(DOCUMENT))),
        ("503", Box::new(|network| network.serve(DOCUMENT, 503, ""))),
        (
            "keys",
            Box::new(move |network| {
                let ok = ok.clone();
                network.respond(DOCUMENT, move |_| Ok(ok.clone()));
                network.fail(KEYS);
            }),
        ),
    ];
    for (number, (name, outage)) in outages.iter().enumerate() {
        outage(&setup.network);
        setup.pass(HOUR * 30);
        assert_refused(&ask(&setup).await, name);
        fields = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh_token.as_str().unwrap().to_owned()),
        ];
        let jti = format!("outage {number}");
        let response = authenticated(&setup, &key, ISSUER, &jti, &fields).await;
        assert_eq!(response.status(), StatusCode::OK, "{name}: {response:?}");
        refresh_token = json_of(&response)["refresh_token"].clone();
    }

    // A document that the host withdrew, or made invalid, is not used any more.
    for (status, body) in [
        (404, String::new()),
        (200, "{}".to_owned()),
        (200, "a".repeat(6000)),
    ] {
        setup.network.serve(DOCUMENT, status, body);
        fields[1].1 = refresh_token.as_str().unwrap().to_owned();
        let jti = format!("invalid {status}");
        let response = authenticated(&setup, &key, ISSUER, &jti, &fields).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{status}");
    }
}

/// DO3, DO7: documents of clients that got no token are forgotten after a day, so that a flood of
/// them does not fill the store.
#[tokio::test]
async fn a_flood_of_documents() {
    let setup = Setup::with(|settings| {
        settings.lifetimes.recheck = settings.lifetimes.grant;
    });
    serve(&setup.network, &document(), u64::MAX);
    for number in 0..20 {
        let url = format!("https://client.example/{number}.json");
        let mut found = document();
        found["client_id"] = json!(url);
        setup.network.serve(&url, 200, found.to_string());
        let mut client = document_client();
        client.id = url;
        Browser::new(&setup).authorize(&client.request()).await;
    }
    let client = document_client();
    let tokens = setup.sign_in(&client).await;
    let count = async || {
        setup.records.sweep().await.unwrap();
        setup
            .records
            .count(Table("broker_documents"))
            .await
            .unwrap()
    };
    assert_eq!(count().await, 21);
    setup.pass(HOUR * 24);
    assert_eq!(count().await, 1);
    setup.network.fail(DOCUMENT);
    setup.pass(HOUR * 24 * 100);
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(response.status(), StatusCode::OK);
    setup.pass(HOUR * 24 * 100);
    assert_eq!(count().await, 1);
}

/// DO3: hosts that answer slowly do not keep other clients from refreshing.
#[tokio::test(start_paused = true)]
async fn slow_hosts_occupy_the_fetches() {
    let setup = Arc::new(Setup::with(|settings| {
        settings.lifetimes.recheck = settings.lifetimes.grant;
    }));
    serve(&setup.network, &document(), 3600);
    let client = document_client();
    let tokens = setup.sign_in(&client).await;
    setup.pass(HOUR * 2);
    let gate = setup.network.hang(DOCUMENT);
    let slow = tokio::spawn({
        let setup = Arc::clone(&setup);
        async move { ask(&setup).await.status() }
    });
    tokio::task::yield_now().await;
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(response.status(), StatusCode::OK);
    gate.release();
    assert_eq!(slow.await.unwrap(), StatusCode::OK);
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

/// DO9: a client assertion is for this server, for a short time, and for one use.
#[tokio::test]
async fn client_assertions_that_are_replayed_or_foreign() {
    let setup = Setup::new();
    let key = SigningKey::generate(Algorithm::Es256, "k").unwrap();
    let mut with_keys = document();
    with_keys["token_endpoint_auth_method"] = json!("private_key_jwt");
    with_keys["jwks_uri"] = json!(KEYS);
    serve(&setup.network, &with_keys, 3600);
    setup.network.serve(KEYS, 200, TestIssuer::jwks_of(&[&key]));
    let revoke = vec![("token", "unknown".to_owned())];
    let now = setup.clock.now().as_secs();
    let claims = |jti: &str, change: &dyn Fn(&mut Value)| {
        let mut claims = json!({
            "iss": DOCUMENT, "sub": DOCUMENT, "aud": ISSUER, "jti": jti,
            "iat": now, "exp": now + 60,
        });
        change(&mut claims);
        claims
    };
    let send = async |key: &SigningKey, claims: &Value| {
        let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
        with_assertion(&setup, "/oauth/revoke", &assertion, &revoke)
            .await
            .status()
    };
    for aud in [
        json!(ISSUER),
        json!("https://mcp.example.com/oauth/token"),
        json!([ISSUER]),
    ] {
        let claims = claims(&aud.to_string(), &|claims| claims["aud"] = aud.clone());
        assert_eq!(send(&key, &claims).await, StatusCode::OK, "{aud}");
        assert_eq!(send(&key, &claims).await, StatusCode::UNAUTHORIZED, "{aud}");
    }
    let other = "https://other.example";
    let attacks: [(&str, Change); 9] = [
        ("aud", Box::new(move |claims| claims["aud"] = json!(other))),
        (
            "resource",
            Box::new(|claims| claims["aud"] = json!(crate::support::RESOURCE)),
        ),
        (
            "slash",
            Box::new(|claims| claims["aud"] = json!(format!("{ISSUER}/"))),
        ),
        (
            "two",
            Box::new(move |claims| claims["aud"] = json!([ISSUER, other])),
        ),
        ("iss", Box::new(move |claims| claims["iss"] = json!(other))),
        ("sub", Box::new(move |claims| claims["sub"] = json!(other))),
        ("jti", Box::new(|claims| claims["jti"] = Value::Null)),
        (
            "past",
            Box::new(move |claims| claims["exp"] = json!(now - 120)),
        ),
        (
            "late",
            Box::new(move |claims| claims["exp"] = json!(now + 3700)),
        ),
    ];
    for (name, change) in &attacks {
        let status = send(&key, &claims(name, change)).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{name}");
    }
    let foreign = SigningKey::generate(Algorithm::Es256, "k").unwrap();
    let status = send(&foreign, &claims("foreign key", &|_| ())).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // Without an assertion, the client is not itself.
    let fields = [("client_id", DOCUMENT), ("token", "unknown")];
    let response = setup.post("/oauth/revoke", &fields).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

/// Sends a request to the token endpoint with a client assertion.
async fn authenticated(
    setup: &Setup,
    key: &SigningKey,
    audience: &str,
    jti: &str,
    fields: &[(&str, String)],
) -> Response<Bytes> {
    let now = setup.clock.now().as_secs();
    let claims = json!({
        "iss": DOCUMENT, "sub": DOCUMENT, "aud": audience, "jti": jti,
        "iat": now, "exp": now + 60,
    });
    let assertion = key.sign("JWT", claims.to_string().as_bytes()).unwrap();
    with_assertion(setup, "/oauth/token", &assertion, fields).await
}

async fn with_assertion(
    setup: &Setup,
    path: &str,
    assertion: &str,
    fields: &[(&str, String)],
) -> Response<Bytes> {
    let mut all: Vec<_> = fields
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let assertion_type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    all.push(("client_assertion_type", assertion_type));
    all.push(("client_assertion", assertion));
    setup.post(path, &all).await
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
