//! Attacks on dynamic registration (RG).

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use portcullis_metadata::authorization::PkceVerifier;
use serde_json::{Value, json};

use crate::support::{
    Browser, Client, Setup, encode, error_of, hidden, json_of, location, param, request, text_of,
};

const LOOPBACK: &str = "http://127.0.0.1:4321/callback";

fn public(uris: &[&str]) -> Value {
    json!({ "redirect_uris": uris, "token_endpoint_auth_method": "none" })
}

/// RG1: a URI that runs a script, or carries a second destination, rejects the whole registration.
#[tokio::test]
async fn redirect_uris_with_scripts_or_a_second_destination() {
    let setup = Setup::new();
    for uri in [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:msgbox(1)",
        "file:///etc/passwd",
        "blob:https://mcp.example.com/1",
        "about:blank",
        "http://127.0.0.1/callback#fragment",
        "http://127.0.0.1/callback#",
        "http://user@127.0.0.1/callback",
        "http://127.0.0.1:80@attacker.example/callback",
        "http://:password@127.0.0.1/callback",
        "http://@127.0.0.1/callback",
        "http://127.0.0.1\\@attacker.example/callback",
        "http://127.0.0.1/callback\r\nSet-Cookie: a=b",
        " http://127.0.0.1/callback",
        "http:127.0.0.1/callback",
        "http:///127.0.0.1/callback",
        "/callback",
        "",
    ] {
        let response = setup.register(public(&[LOOPBACK, uri])).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{uri}");
        assert_eq!(error_of(&response), "invalid_redirect_uri", "{uri}");
    }
}

/// RG2: nothing leads to a host that is neither loopback, listed nor known.
#[tokio::test]
async fn redirect_uris_at_a_foreign_host() {
    let setup = Setup::with(|settings| {
        settings.clients.redirect_hosts = vec!["app.example".into(), "*.apps.example".into()];
    });
    for uri in [
        "https://attacker.example/callback",
        "https://app.example.attacker.example/callback",
        "https://attacker-app.example/callback",
        "https://app.example./callback",
        "https://app.example:8443/callback",
        "http://app.example/callback",
        "https://sub.app.example/callback",
        "https://apps.example/callback",
        "https://attacker.example/https://app.example/callback",
        "https://attacker.example?https://app.example/callback",
        "https://claude.ai.attacker.example/api/mcp/auth_callback",
        "https://claude.ai/api/mcp/auth_callback/../../attacker",
        "https://claude.ai/api/mcp/auth_callback?next=https://attacker.example",
        "http://127.0.0.1.attacker.example/callback",
        "http://localhost.attacker.example/callback",
        "http://127.0.0.2/callback",
        "http://10.0.0.1/callback",
        "https://127.0.0.1/callback",
        "attacker://callback",
    ] {
        let response = setup.register(public(&[uri])).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{uri}");
        assert_eq!(error_of(&response), "invalid_redirect_uri", "{uri}");
    }
    for uri in [
        "https://app.example/callback",
        "https://a.apps.example/callback",
        "https://claude.ai/api/mcp/auth_callback",
        "http://[::1]:1/callback",
        "http://localhost:1/callback",
    ] {
        let response = setup.register(public(&[uri])).await;
        assert_eq!(response.status(), StatusCode::CREATED, "{uri}");
    }
}

/// RG2: an operator who removes a host stops its sign-ins at each later step.
#[tokio::test]
async fn a_host_that_is_removed_while_users_sign_in() {
    let setup = Setup::with(|settings| {
        settings.clients.redirect_hosts = vec!["app.example".into()];
    });
    let client = setup
        .client_with(public(&["https://app.example/callback"]))
        .await;
    let mut browser = Browser::new(&setup);
    let code = param(&browser.sign_in(&client).await, "code").unwrap();
    let page = browser.authorize(&client.request()).await;
    let at_provider = browser.approve(&page).await;
    let sealed = browser.consent_page(&client).await;

    let without = setup.restarted(|settings| settings.clients.redirect_hosts.clear());
    let mut later = Browser::new(&without);
    later.cookies = browser.cookies.clone();
    let answered = later
        .post(
            "/oauth/consent",
            &[("request", &sealed), ("decision", "allow:idp")],
        )
        .await;
    let returned = later.return_from(&at_provider).await;
    let asked = later.authorize(&client.request()).await;
    for page in [answered, returned, asked] {
        assert_eq!(page.status(), StatusCode::BAD_REQUEST);
        assert!(!page.headers().contains_key("location"));
        assert!(!text_of(&page).contains("app.example"));
    }
    assert!(without.network.hits(without.provider.endpoint("token")) == 0);
    let response = without.exchange(&client, &code).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// RG3: a URI that cannot be used does not keep the client from registering, and is refused when it
/// is used.
#[tokio::test]
async fn an_unusable_uri_beside_a_usable_one() {
    let setup = Setup::new();
    let foreign = "https://attacker.example/callback";
    let mut client = setup.client_with(public(&[LOOPBACK, foreign])).await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    assert_eq!(page.status(), StatusCode::OK);
    client.redirect_uri = foreign.to_owned();
    let page = browser.authorize(&client.request()).await;
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
    assert!(!page.headers().contains_key("location"));
}

/// M6, RG4: equal registrations are one client; the order of their members makes no difference.
#[tokio::test]
async fn the_same_registration_a_thousand_times() {
    let setup = Setup::with(|settings| settings.clients.max_registered = 1);
    let mut ids = BTreeSet::new();
    for turn in 0..1000 {
        let uris = [LOOPBACK, "http://localhost/callback"];
        let uris = if turn % 2 == 0 {
            uris
        } else {
            [uris[1], uris[0]]
        };
        ids.insert(setup.client_with(public(&uris)).await.id);
    }
    assert_eq!(ids.len(), 1);
}

/// RG4: a flood takes the place of clients that were never used, and not of those that have grants.
#[tokio::test]
async fn a_flood_of_registrations() {
    let setup = Setup::with(|settings| settings.clients.max_registered = 3);
    let used = setup.client().await;
    let tokens = setup.sign_in(&used).await;
    let mut flood = Vec::new();
    for number in 0..20 {
        let uri = format!("http://127.0.0.1/{number}");
        flood.push(setup.client_with(public(&[&uri])).await);
        setup.pass(Duration::from_secs(1));
    }
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&flood[0].request()).await;
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = setup.refresh(&used, refresh_token).await;
    assert_eq!(response.status(), StatusCode::OK);

    for client in &flood[18..] {
        setup.sign_in(client).await;
    }
    let response = setup.register(public(&["http://127.0.0.1/another"])).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(error_of(&response), "temporarily_unavailable");
}

/// RG4: registrations of one address are limited, others are not.
#[tokio::test]
async fn registrations_of_one_address() {
    let setup = Setup::new();
    let register = async |address: [u8; 4]| {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        let body = public(&[LOOPBACK]).to_string().into();
        let request = request(Method::POST, "/oauth/register", headers, body);
        let response = setup.broker.handle(request, IpAddr::from(address)).await;
        response.status()
    };
    for _ in 0..60 {
        assert_eq!(register([203, 0, 113, 1]).await, StatusCode::CREATED);
    }
    assert_eq!(
        register([203, 0, 113, 1]).await,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(register([203, 0, 113, 2]).await, StatusCode::CREATED);
}

/// RG4: registrations are limited in size.
#[tokio::test]
async fn large_registrations() {
    let setup = Setup::new();
    let uris = |number: usize| -> Vec<String> {
        (0..number)
            .map(|number| format!("http://127.0.0.1/{number}"))
            .collect()
    };
    let long = |length: usize| {
        let uri = format!("{LOOPBACK}/");
        vec![format!("{uri}{}", "a".repeat(length - uri.len()))]
    };
    for (uris, padding, expected) in [
        (uris(16), 0, StatusCode::CREATED),
        (uris(17), 0, StatusCode::BAD_REQUEST),
        (long(2048), 0, StatusCode::CREATED),
        (long(2049), 0, StatusCode::BAD_REQUEST),
        (uris(1), 16 * 1024, StatusCode::BAD_REQUEST),
    ] {
        let metadata = json!({
            "redirect_uris": uris, "token_endpoint_auth_method": "none",
            "software_id": "a".repeat(padding),
        });
        let response = setup.register(metadata).await;
        assert_eq!(response.status(), expected, "{}", uris.len());
    }
}

/// M7, RG5, CO6: the page shows where the answer goes, and the name of the client as text.
#[tokio::test]
async fn a_name_that_deceives() {
    let setup = Setup::new();
    let name = format!(
        "</bdi><script>alert(1)</script>\u{202e}Claude\u{0}\u{200f}{}",
        "a".repeat(100)
    );
    let client = setup
        .client_with(json!({
            "redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "none",
            "client_name": name, "logo_uri": "https://attacker.example/logo.png",
            "client_uri": "https://claude.ai",
        }))
        .await;
    let page = Browser::new(&setup).authorize(&client.request()).await;
    let text = text_of(&page);
    assert!(!text.contains("<script"), "{text}");
    for hidden in [
        "\u{202e}",
        "\u{0}",
        "\u{200f}",
        "attacker.example",
        "claude.ai",
    ] {
        assert!(!text.contains(hidden), "{hidden:?}");
    }
    assert!(!text.contains(&"a".repeat(64)));
    assert!(text.contains("Any program can choose this name."));
    let heading = text.split("<h1>").nth(1).unwrap();
    assert!(
        heading.starts_with(r#"<span class="host">A program on this computer<"#),
        "{heading}"
    );
    assert!(setup.network.urls().is_empty());
}

/// RG5: hosts are shown in ASCII, so that a similar letter is visible.
#[tokio::test]
async fn a_host_with_similar_letters() {
    let setup = Setup::with(|settings| {
        settings.clients.redirect_hosts = vec!["*.xn--pple-43d.com".into()];
    });
    let client = setup
        .client_with(public(&["https://login.xn--pple-43d.com/callback"]))
        .await;
    let page = Browser::new(&setup).authorize(&client.request()).await;
    assert!(text_of(&page).contains("login.xn--pple-43d.com"));
    assert!(!text_of(&page).contains("\u{430}pple"));
}

/// RG6: a registration is reduced to what the broker offers.
#[tokio::test]
async fn a_registration_that_asks_for_more() {
    let setup = Setup::new();
    let response = setup
        .register(json!({
            "redirect_uris": [LOOPBACK],
            "grant_types": [
                "authorization_code", "implicit", "password", "client_credentials",
                "urn:ietf:params:oauth:grant-type:device_code",
            ],
            "response_types": ["code", "token", "code id_token"],
            "token_endpoint_auth_method": "tls_client_auth",
            "scope": "mcp:admin",
            "jwks_uri": "https://attacker.example/jwks",
            "software_statement": "a.b.c",
            "client_id": "chosen",
            "registration_client_uri": "https://attacker.example/",
        }))
        .await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let registered = json_of(&response);
    assert_eq!(
        registered["grant_types"],
        json!(["authorization_code", "refresh_token"])
    );
    assert_eq!(registered["response_types"], json!(["code"]));
    assert_eq!(registered["token_endpoint_auth_method"], "none");
    assert_ne!(registered["client_id"], "chosen");
    for absent in [
        "scope",
        "jwks_uri",
        "software_statement",
        "client_secret",
        "registration_client_uri",
        "registration_access_token",
    ] {
        assert!(registered.get(absent).is_none(), "{absent}");
    }
    assert!(setup.network.urls().is_empty());
}

/// RG7: there is nothing to read, change or delete, and other metadata are another client.
#[tokio::test]
async fn the_registration_of_another_client() {
    let setup = Setup::new();
    let client = setup.client().await;
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH] {
        for path in [
            "/oauth/register".to_owned(),
            format!("/oauth/register/{}", client.id),
            format!("/oauth/register?client_id={}", client.id),
        ] {
            let request = request(method.clone(), &path, HeaderMap::new(), Bytes::new());
            let status = setup.send(request).await.status();
            let refused = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
            assert!(refused.contains(&status), "{method} {path}");
        }
    }
    let mut metadata = public(&[LOOPBACK, "http://localhost/attacker"]);
    metadata["client_name"] = json!("Test client");
    metadata["client_id"] = json!(client.id);
    let other = setup.client_with(metadata).await;
    assert_ne!(other.id, client.id);
    let stolen = Client {
        id: client.id,
        redirect_uri: "http://localhost/attacker".into(),
        verifier: PkceVerifier::generate().unwrap(),
    };
    let page = Browser::new(&setup).authorize(&stolen.request()).await;
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
}

/// RG8: an unknown client gets a page with the remedy, and 401 at the token endpoint.
#[tokio::test]
async fn a_client_that_is_not_registered() {
    let setup = Setup::new();
    let mut client = setup.client().await;
    client.id = "client_unknown".into();
    let page = Browser::new(&setup).authorize(&client.request()).await;
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
    assert!(!page.headers().contains_key("location"));
    assert!(text_of(&page).contains("remove the saved sign-in"));
    for response in [
        setup.exchange(&client, "code").await,
        setup.refresh(&client, "token").await,
    ] {
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(response.headers().contains_key("www-authenticate"));
        assert_eq!(error_of(&response), "invalid_client");
    }
}

/// RG8: a registration lives as long as its grants.
#[tokio::test]
async fn a_client_that_refreshes_for_years() {
    let setup = Setup::with(|settings| {
        settings.lifetimes.recheck = settings.lifetimes.grant * 20;
    });
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let mut refresh_token = tokens["refresh_token"].as_str().unwrap().to_owned();
    for _ in 0..6 {
        setup.pass(setup.settings.lifetimes.grant.mul_f64(0.99));
        setup.records.sweep().await.unwrap();
        let response = setup.refresh(&client, &refresh_token).await;
        assert_eq!(response.status(), StatusCode::OK);
        refresh_token = json_of(&response)["refresh_token"]
            .as_str()
            .unwrap()
            .to_owned();
    }
}

/// RG9: a program on a user's device gets no secret, and one that other servers can keep is used.
#[tokio::test]
async fn a_secret_of_a_distributed_program() {
    let setup = Setup::with(|settings| {
        settings.clients.redirect_hosts = vec!["app.example".into()];
    });
    for method in [
        json!("client_secret_basic"),
        json!("client_secret_post"),
        Value::Null,
    ] {
        let response = setup
            .register(json!({
                "redirect_uris": [LOOPBACK, "cursor://anysphere.cursor-mcp/oauth/callback"],
                "token_endpoint_auth_method": method,
            }))
            .await;
        let registered = json_of(&response);
        assert_eq!(registered["token_endpoint_auth_method"], "none");
        assert!(registered.get("client_secret").is_none());
    }
    let metadata = json!({
        "redirect_uris": ["https://app.example/callback"],
        "token_endpoint_auth_method": "client_secret_post",
    });
    let response = setup.register(metadata).await;
    let registered = json_of(&response);
    let secret = registered["client_secret"].as_str().unwrap();
    let client = Client {
        id: registered["client_id"].as_str().unwrap().to_owned(),
        redirect_uri: "https://app.example/callback".into(),
        verifier: PkceVerifier::generate().unwrap(),
    };
    // The consent page comes all the same.
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    assert!(!hidden(&page, "request").is_empty());
    let code = param(&browser.sign_in(&client).await, "code").unwrap();
    let fields = |secret: Option<&str>| -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.clone()),
            ("client_id", client.id.clone()),
            ("code_verifier", client.verifier.secret().to_owned()),
        ];
        fields.extend(secret.map(|secret| ("client_secret", secret.to_owned())));
        fields
    };
    for wrong in [None, Some("wrong"), Some("")] {
        let fields = fields(wrong);
        let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let response = setup.post("/oauth/token", &fields).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{wrong:?}");
    }
    let fields = fields(Some(secret));
    let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let response = setup.post("/oauth/token", &fields).await;
    assert_eq!(response.status(), StatusCode::OK);
}

/// RG2: the error of an unusable URI is never sent there.
#[tokio::test]
async fn errors_go_only_to_usable_uris() {
    let setup = Setup::new();
    let foreign = "https://attacker.example/callback";
    let client = setup.client_with(public(&[LOOPBACK, foreign])).await;
    let path = |redirect_uri: &str| {
        let params = [
            ("client_id", client.id.as_str()),
            ("redirect_uri", redirect_uri),
            ("response_type", "token"),
        ];
        format!("/oauth/authorize?{}", encode(&params))
    };
    let response = setup.get(&path(foreign)).await;
    assert!(!response.headers().contains_key("location"));
    let target = location(&setup.get(&path(LOOPBACK)).await);
    assert_eq!(
        param(&target, "error").as_deref(),
        Some("unsupported_response_type")
    );
}
