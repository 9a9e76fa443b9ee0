//! CO5: a remembered consent.

use http::{HeaderMap, StatusCode};
use serde_json::json;
use url::Url;

use crate::support::{Browser, Client, PROVIDER, Setup, continued, location, param, text_of};

const DOCUMENT: &str = "https://client.example/oauth/client.json";

/// A broker that remembers consents, and a client with a metadata document.
fn setup() -> (Setup, Client) {
    let setup = Setup::with(|settings| {
        settings.pages.remember = true;
        settings.clients.redirect_hosts = vec!["client.example".into()];
    });
    let redirect_uri = "https://client.example/callback";
    let document = json!({
        "client_id": DOCUMENT,
        "client_name": "Client",
        "redirect_uris": [redirect_uri, "http://127.0.0.1/callback"],
    });
    setup.network.serve(DOCUMENT, 200, document.to_string());
    (setup, client(redirect_uri))
}

fn client(redirect_uri: &str) -> Client {
    Client::new(DOCUMENT, redirect_uri)
}

/// Opens the authorization page, as a navigation from this kind of site.
async fn open(browser: &mut Browser<'_>, client: &Client, site: &str) -> Result<Url, String> {
    open_with(browser, &client.request(), site).await
}

async fn open_with(
    browser: &mut Browser<'_>,
    params: &[(&str, String)],
    site: &str,
) -> Result<Url, String> {
    let mut headers = HeaderMap::new();
    headers.insert("sec-fetch-site", site.parse().unwrap());
    let page = browser.navigate(params, headers).await;
    assert_eq!(page.status(), StatusCode::OK);
    let text = text_of(&page).to_owned();
    match text.contains("http-equiv=\"refresh\"") {
        true => Ok(continued(&page)),
        false => Err(text),
    }
}

/// Signs in for the first time, and asks to remember the consent.
async fn sign_in_and_remember(browser: &mut Browser<'_>, client: &Client) {
    let page = browser.authorize(&client.request()).await;
    assert!(text_of(&page).contains(r#"name="remember""#));
    let url = browser.approve_with(&page, &[("remember", "on")]).await;
    location(&browser.return_from(&url).await);
}

#[tokio::test]
async fn a_remembered_consent_is_not_asked_again() {
    let (setup, client) = setup();
    let mut browser = Browser::new(&setup);
    sign_in_and_remember(&mut browser, &client).await;
    for site in ["none", "same-origin", "same-site"] {
        let url = open(&mut browser, &client, site).await.unwrap();
        assert!(url.as_str().starts_with(PROVIDER));
        browser.remember_nonce(&url);
        let location = location(&browser.return_from(&url).await);
        assert!(param(&location, "code").is_some(), "{site}");
    }
}

/// CO5: a page of another site, or one that does not say where it comes from, cannot ride on a
/// remembered consent.
#[tokio::test]
async fn another_site_cannot_use_a_remembered_consent() {
    let (setup, client) = setup();
    let mut browser = Browser::new(&setup);
    sign_in_and_remember(&mut browser, &client).await;
    for site in ["cross-site", "unknown", ""] {
        assert!(open(&mut browser, &client, site).await.is_err(), "{site}");
    }
    let page = browser.authorize(&client.request()).await;
    assert!(text_of(&page).contains("<form"));
}

/// CO5: it covers this browser, redirect URI and these scopes only.
#[tokio::test]
async fn a_remembered_consent_covers_nothing_else() {
    let (setup, client) = setup();
    let mut browser = Browser::new(&setup);
    sign_in_and_remember(&mut browser, &client).await;

    let mut other_browser = Browser::new(&setup);
    assert!(open(&mut other_browser, &client, "none").await.is_err());
    let mut more = client.request();
    more.push(("scope", "mcp:tools mcp:admin".to_owned()));
    assert!(open_with(&mut browser, &more, "none").await.is_err());
    let loopback = self::client("http://127.0.0.1:4321/callback");
    let page = open(&mut browser, &loopback, "none").await.unwrap_err();
    assert!(!page.contains(r#"name="remember""#));
}

/// CO5: a client that registered itself is always asked about, even if a form says otherwise.
#[tokio::test]
async fn a_registered_client_is_never_remembered() {
    let (setup, _) = setup();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    assert!(!text_of(&page).contains(r#"name="remember""#));
    let url = browser.approve_with(&page, &[("remember", "on")]).await;
    location(&browser.return_from(&url).await);
    assert!(open(&mut browser, &client, "none").await.is_err());
}

/// CO5: another user of the same browser is asked after the sign-in, and gets no code before.
#[tokio::test]
async fn another_user_is_asked() {
    let (setup, client) = setup();
    let mut browser = Browser::new(&setup);
    sign_in_and_remember(&mut browser, &client).await;
    setup.providers[0].user.lock()["sub"] = json!("mallory");
    let url = open(&mut browser, &client, "none").await.unwrap();
    browser.remember_nonce(&url);
    let page = browser.return_from(&url).await;
    assert_eq!(page.status(), StatusCode::OK);
    assert!(text_of(&page).contains("<form"));
    // The consent of the first user is forgotten.
    assert!(open(&mut browser, &client, "none").await.is_err());
}

/// CO5: nothing is remembered unless the operator allows it.
#[tokio::test]
async fn nothing_is_remembered_by_default() {
    let (setup, client) = setup();
    let setup = setup.restarted(|settings| settings.pages.remember = false);
    let document = json!({
        "client_id": DOCUMENT,
        "client_name": "Client",
        "redirect_uris": [&client.redirect_uri],
    });
    setup.network.serve(DOCUMENT, 200, document.to_string());
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    assert!(!text_of(&page).contains(r#"name="remember""#));
    let url = browser.approve_with(&page, &[("remember", "on")]).await;
    location(&browser.return_from(&url).await);
    assert!(open(&mut browser, &client, "none").await.is_err());
}

/// Each page renews the cookie of the browser with its value, so that a consent that is remembered
/// later lasts as long as one that was remembered at once.
#[tokio::test]
async fn the_cookie_of_a_browser_is_renewed() {
    let (setup, client) = setup();
    let mut browser = Browser::new(&setup);
    let mut cookies = Vec::new();
    for _ in 0..2 {
        let page = browser.authorize(&client.request()).await;
        let cookie = page.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.contains("; Max-Age=7862400;"), "{cookie}");
        cookies.push(cookie.to_owned());
    }
    assert_eq!(cookies[0], cookies[1]);
}
