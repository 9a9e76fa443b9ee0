//! Attacks on the consent of the user (CO).

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use serde_json::json;

use crate::support::{
    Browser, Client, ISSUER, Setup, continued, hidden, json_of, location, param, text_of,
};

const MINUTE: Duration = Duration::from_secs(60);

/// Asserts that an answer was refused with a page, and began nothing.
pub(crate) fn assert_refused(response: &Response<Bytes>, status: StatusCode, attack: &str) {
    assert_eq!(response.status(), status, "{attack}");
    assert!(!response.headers().contains_key("location"), "{attack}");
    assert!(!response.headers().contains_key("set-cookie"), "{attack}");
    assert!(!text_of(response).contains("http-equiv"), "{attack}");
}

pub(crate) async fn approve(browser: &mut Browser<'_>, sealed: &str) -> Response<Bytes> {
    let fields = [("request", sealed), ("decision", "allow:idp")];
    browser.post("/oauth/consent", &fields).await
}

/// M2, CO1: the browser goes to the provider only after the user approved, each time.
#[tokio::test]
async fn the_confused_deputy() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    browser.sign_in(&client).await;
    for _ in 0..2 {
        let page = browser.authorize(&client.request()).await;
        assert_eq!(page.status(), StatusCode::OK);
        assert!(!page.headers().contains_key("location"));
        assert!(!text_of(&page).contains("idp.example"));
        assert!(!text_of(&page).contains("http-equiv"));
    }
    let mut params = client.request();
    params.push(("prompt", "none".to_owned()));
    params.push(("decision", "allow:idp".to_owned()));
    let page = browser.authorize(&params).await;
    assert_eq!(page.status(), StatusCode::OK);
    assert!(!text_of(&page).contains("http-equiv"));
}

/// CO1: a user who denies is not sent to the provider, and the client learns it.
#[tokio::test]
async fn a_denied_request() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let response = browser.decide(&page, "deny").await;
    let target = continued(&response);
    assert!(target.as_str().starts_with(&client.redirect_uri));
    assert_eq!(param(&target, "error").as_deref(), Some("access_denied"));
    assert_eq!(param(&target, "state").as_deref(), Some("client-state"));
    assert_eq!(param(&target, "iss").as_deref(), Some(ISSUER));
    assert!(setup.network.urls().is_empty());
}

/// CO3: a page of another origin cannot submit the approval.
#[tokio::test]
async fn an_approval_from_another_origin() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let sealed = browser.consent_page(&client).await;
    let own = browser.form_headers.clone();
    for (origins, sites) in [
        (vec!["https://attacker.example"], vec![]),
        (vec!["https://attacker.example"], vec!["same-origin"]),
        (vec!["https://sub.mcp.example.com"], vec!["same-site"]),
        (vec!["null"], vec!["same-origin"]),
        (vec!["null"], vec![]),
        (vec![], vec!["same-origin"]),
        (vec![], vec![]),
        (vec![""], vec![]),
        (vec!["http://mcp.example.com"], vec![]),
        (vec!["https://mcp.example.com/"], vec![]),
        (vec!["https://mcp.example.com:443"], vec![]),
        (vec!["https://MCP.example.com"], vec![]),
        (vec!["https://mcp.example.com:8443"], vec![]),
        (vec!["https://mcp.example.com.attacker.example"], vec![]),
        (vec![ISSUER, "https://attacker.example"], vec![]),
        (vec!["https://attacker.example", ISSUER], vec![]),
        (vec![ISSUER, ISSUER], vec![]),
        (vec![ISSUER], vec!["cross-site"]),
        (vec![ISSUER], vec!["same-site"]),
        (vec![ISSUER], vec!["none"]),
        (vec![ISSUER], vec![""]),
        (vec![ISSUER], vec!["same-origin", "cross-site"]),
    ] {
        let attack = format!("{origins:?} {sites:?}");
        browser.form_headers.clear();
        for origin in origins {
            browser
                .form_headers
                .append(header::ORIGIN, origin.parse().unwrap());
        }
        for site in sites {
            browser
                .form_headers
                .append("sec-fetch-site", site.parse().unwrap());
        }
        let response = approve(&mut browser, &sealed).await;
        assert_refused(&response, StatusCode::FORBIDDEN, &attack);
    }
    assert!(setup.network.urls().is_empty());
    // Old browsers do not send `Sec-Fetch-Site`.
    browser.form_headers = own;
    browser.form_headers.remove("sec-fetch-site");
    assert_eq!(
        approve(&mut browser, &sealed).await.status(),
        StatusCode::OK
    );
}

/// CO3: a form that was changed, or made for something else, is refused.
#[tokio::test]
async fn an_approval_of_another_request() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let sealed = browser.consent_page(&client).await;
    let other = setup.client_with(json!({
        "redirect_uris": ["http://127.0.0.1/attacker"], "token_endpoint_auth_method": "none",
    }));
    let other = browser.consent_page(&other.await).await;
    let middle = sealed.len() / 2;
    let mixed = format!("{}{}", &sealed[..middle], &other[middle..]);
    let flipped = |position: usize| {
        let mut bytes = sealed.clone().into_bytes();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let elsewhere = Setup::new();
    let foreign = elsewhere.client().await;
    let foreign = Browser::new(&elsewhere).consent_page(&foreign).await;
    for attack in [
        mixed,
        flipped(0),
        flipped(40),
        flipped(middle),
        flipped(sealed.len() - 2),
        sealed[1..].to_owned(),
        sealed[..sealed.len() - 4].to_owned(),
        format!("{sealed}AAAA"),
        format!("{sealed}="),
        foreign,
        String::new(),
        "A".repeat(100_000),
        "{}".to_owned(),
    ] {
        let response = approve(&mut browser, &attack).await;
        assert_refused(&response, StatusCode::BAD_REQUEST, &attack);
    }
    let fields = [
        ("request", sealed.as_str()),
        ("request", other.as_str()),
        ("decision", "allow:idp"),
    ];
    let response = browser.post("/oauth/consent", &fields).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "two requests");
    for decision in [
        "",
        "allow",
        "allow:",
        "allow:other",
        "ALLOW:idp",
        "allow:idp ",
    ] {
        let fields = [("request", sealed.as_str()), ("decision", decision)];
        let response = browser.post("/oauth/consent", &fields).await;
        assert_refused(&response, StatusCode::BAD_REQUEST, decision);
    }
    let fields = [
        ("request", sealed.as_str()),
        ("decision", "deny"),
        ("decision", "allow:idp"),
    ];
    let response = browser.post("/oauth/consent", &fields).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "two decisions");
    assert!(setup.network.urls().is_empty());
}

/// CO3: a page that is older than half an hour is not answered.
#[tokio::test]
async fn an_approval_that_is_too_late() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let sealed = browser.consent_page(&client).await;
    setup.pass(30 * MINUTE - Duration::from_secs(1));
    assert_eq!(
        approve(&mut browser, &sealed).await.status(),
        StatusCode::OK
    );
    setup.pass(Duration::from_secs(1));
    let response = approve(&mut browser, &sealed).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "expired");
}

/// CO3: the form must be sent as a form, and with POST.
#[tokio::test]
async fn an_approval_as_another_content_type() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let sealed = browser.consent_page(&client).await;
    let cookies: Vec<_> = browser
        .cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for content_type in ["text/plain", "application/json", "multipart/form-data"] {
        let mut headers = browser.form_headers.clone();
        headers.insert(header::COOKIE, cookies.join("; ").parse().unwrap());
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        let body = format!("decision=allow:idp&request={sealed}");
        let request =
            crate::support::request(http::Method::POST, "/oauth/consent", headers, body.into());
        let response = setup.send(request).await;
        assert_refused(&response, StatusCode::BAD_REQUEST, content_type);
    }
    let path = format!("/oauth/consent?decision=allow:idp&request={sealed}");
    let response = browser.get(&path).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
}

/// CO4: no page with a decision can be framed or opened by another site.
#[tokio::test]
async fn the_page_is_framed() {
    let setup = Setup::new();
    let client = setup.client().await;
    let page = Browser::new(&setup).authorize(&client.request()).await;
    let headers = page.headers();
    assert_eq!(headers["x-frame-options"], "DENY");
    assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'"));
}

/// CO6: the page runs no script and sends its form to this server alone.
#[tokio::test]
async fn markup_in_the_request() {
    let setup = Setup::new();
    let uri = "http://127.0.0.1/callback?\"><script>alert(1)</script>";
    let client = setup
        .client_with(json!({
            "redirect_uris": [uri], "token_endpoint_auth_method": "none",
            "client_name": "\"><img src=x onerror=alert(1)>&lt;",
        }))
        .await;
    let mut params = client.request();
    params.retain(|(name, _)| *name != "state");
    params.push(("state", "\"><script>alert(2)</script>".to_owned()));
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&params).await;
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("form-action 'self'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let denied = browser.decide(&page, "deny").await;
    for page in [&page, &denied] {
        for markup in ["<script", "<img src=x"] {
            assert!(
                !text_of(page).contains(markup),
                "{markup}: {}",
                text_of(page)
            );
        }
    }
    assert_eq!(
        param(&continued(&denied), "state").as_deref(),
        Some("\"><script>alert(2)</script>")
    );
}

/// CO7: an approval that is replayed after the sign-in gives nothing without another sign-in.
#[tokio::test]
async fn an_approval_that_is_replayed_after_success() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    browser.return_from(&url).await;
    let response = browser.return_from(&url).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "the callback twice");
    // The history of a browser has no cookie of the provider's response.
    let sealed = hidden(&page, "request");
    let replayed = approve(&mut browser, &sealed).await;
    assert_eq!(replayed.status(), StatusCode::OK);
    assert_eq!(continued(&replayed).origin(), url.origin());
    assert!(!text_of(&replayed).contains("code="));
}

/// CO9: the code is shown only for loopback redirects, if the operator offers it, after the
/// sign-in.
#[tokio::test]
async fn a_code_to_carry_away() {
    let offered = Setup::with(|settings| {
        settings.pages.paste_callback = true;
        settings.clients.redirect_hosts = vec!["app.example".into()];
    });
    let web = offered
        .client_with(json!({
            "redirect_uris": ["https://app.example/callback"],
            "token_endpoint_auth_method": "none",
        }))
        .await;
    let local = offered.client().await;
    let response = sign_in_remotely(&offered, &local).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(text_of(&response).contains("http://127.0.0.1:4321/callback?code="));
    assert!(text_of(&response).contains("access"));
    let response = sign_in_remotely(&offered, &web).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let turned_off = Setup::new();
    let local = turned_off.client().await;
    let response = sign_in_remotely(&turned_off, &local).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
}

async fn sign_in_remotely(setup: &Setup, client: &Client) -> Response<Bytes> {
    let mut browser = Browser::new(setup);
    let page = browser.authorize(&client.request()).await;
    let is_offered = text_of(&page).contains(r#"name="remote""#);
    let is_expected =
        setup.settings.pages.paste_callback && client.redirect_uri.starts_with("http:");
    assert_eq!(is_offered, is_expected);
    let sealed = hidden(&page, "request");
    let fields = [
        ("request", sealed.as_str()),
        ("decision", "allow:idp"),
        ("remote", "on"),
    ];
    let response = browser.post("/oauth/consent", &fields).await;
    let url = continued(&response);
    *setup.provider.nonce.lock() = param(&url, "nonce").unwrap();
    browser.return_from(&url).await
}

/// CO2: a sign-in that takes more than ten minutes is over.
#[tokio::test]
async fn a_callback_that_is_too_late() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let url = browser.approve(&page).await;
    setup.pass(10 * MINUTE);
    let response = browser.return_from(&url).await;
    assert_refused(&response, StatusCode::BAD_REQUEST, "late");
    assert_eq!(setup.network.hits(setup.provider.endpoint("token")), 0);
}

/// CO3: the approval of a client that registered is bound to its request alone.
#[tokio::test]
async fn the_code_belongs_to_the_approved_request() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    let sealed = hidden(&page, "request");
    let fields = [
        ("request", sealed.as_str()),
        ("decision", "allow:idp"),
        ("scope", "mcp:admin"),
        ("redirect_uri", "https://attacker.example/"),
        ("client_id", "attacker"),
        ("state", "attacker"),
    ];
    let response = browser.post("/oauth/consent", &fields).await;
    let url = continued(&response);
    *setup.provider.nonce.lock() = param(&url, "nonce").unwrap();
    let target = location(&browser.return_from(&url).await);
    assert!(target.as_str().starts_with(&client.redirect_uri));
    assert_eq!(param(&target, "state").as_deref(), Some("client-state"));
    let code = param(&target, "code").unwrap();
    let tokens = json_of(&setup.exchange(&client, &code).await);
    assert_eq!(tokens["scope"], "mcp:tools");
}
