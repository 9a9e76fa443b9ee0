//! The consent page: its content and the validation of its submission.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::*;

struct ShownPage {
    page: Response,
    origin: String,
}

async fn show(server: &Server) -> ShownPage {
    let client = server.register().await;
    let page = server
        .authorize(&authorization_request(&client, verifier().challenge()))
        .await;
    assert_eq!(page.status, StatusCode::OK);
    ShownPage {
        page,
        origin: format!("http://{}", server.address),
    }
}

impl ShownPage {
    async fn submit(&self, server: &Server, decision: &str) -> Response {
        let headers = [
            FORM,
            ("origin", &*self.origin),
            ("cookie", &self.page.cookie()),
        ];
        self.post(
            server,
            &headers,
            &[("user", "alice"), ("decision", decision)],
        )
        .await
    }

    async fn post(
        &self,
        server: &Server,
        headers: &[(&str, &str)],
        fields: &[(&str, &str)],
    ) -> Response {
        let ticket = self.page.ticket();
        let fields = [fields, &[("ticket", &*ticket)]].concat();
        server
            .send(
                Method::POST,
                "/authorize/consent",
                headers,
                &encoded(&fields),
            )
            .await
    }
}

/// K1, K2: the page displays the client, redirect host, scopes and resource, and states that it is
/// for development.
#[tokio::test]
async fn the_page_displays_the_request() {
    let server = Server::start(|settings| settings.user = "zoë".to_owned()).await;
    let page = show(&server).await.page;
    for text in [
        "Weather Notes",
        "127.0.0.1:4321",
        "mcp:tools",
        RESOURCE,
        "value=\"zoë\"",
        "For development",
    ] {
        assert!(page.body.contains(text), "{text}");
    }
}

/// The page cannot be framed, runs no scripts, and is not cached.
#[tokio::test]
async fn the_page_cannot_be_framed() {
    let server = Server::start(|_| {}).await;
    let page = show(&server).await.page;
    let policy = page.header("content-security-policy").unwrap();
    for directive in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "style-src 'nonce-",
        "form-action 'self' http: https:;",
    ] {
        assert!(policy.contains(directive), "{policy}");
    }
    assert!(!policy.contains("script-src"));
    assert!(!policy.contains("unsafe"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    assert_eq!(page.header("cache-control"), Some("no-store"));

    let cookie = page.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly"));
    assert!(cookie.contains("; SameSite=Lax"));
    assert!(cookie.contains("; Path=/authorize;"));
    assert!(!page.body.contains("<script"));
}

#[tokio::test]
async fn client_metadata_is_escaped() {
    let server = Server::start(|_| {}).await;
    let body = json!({ "client_name": "<img src=x>\"'&", "redirect_uris": [REDIRECT] });
    let client = server.register_with(&body).await.json();
    let verifier = verifier();
    let mut parameters =
        authorization_request(client["client_id"].as_str().unwrap(), verifier.challenge());
    parameters.push(("login_hint", "\"><b>"));
    let page = server.authorize(&parameters).await;
    assert!(page.body.contains("&lt;img src=x&gt;&quot;&#39;&amp;"));
    assert!(page.body.contains("value=\"&quot;&gt;&lt;b&gt;\""));
    assert!(!page.body.contains("<img"));
    assert!(!page.body.contains("<b>"));
}

#[tokio::test]
async fn a_denial_is_sent_to_the_client() {
    let server = Server::start(|_| {}).await;
    let response = show(&server).await.submit(&server, "deny").await;
    assert_eq!(response.status, StatusCode::SEE_OTHER);
    assert_eq!(
        response.redirect_parameter("error").as_deref(),
        Some("access_denied")
    );
    assert_eq!(
        response.redirect_parameter("state").as_deref(),
        Some("a state & more")
    );
    assert_eq!(
        response.redirect_parameter("iss").as_deref(),
        Some(&*server.issuer)
    );
    assert_eq!(response.redirect_parameter("code"), None);
}

fn assert_rejected(response: &Response, status: StatusCode) {
    assert_eq!(response.status, status, "{}", response.body);
    assert!(response.location().is_none());
    assert!(response.body.contains("For development"));
}

/// A ticket can be used once.
#[tokio::test]
async fn a_page_can_be_submitted_once() {
    let server = Server::start(|_| {}).await;
    let shown = show(&server).await;
    assert_eq!(
        shown.submit(&server, "allow").await.status,
        StatusCode::SEE_OTHER
    );
    assert_rejected(
        &shown.submit(&server, "allow").await,
        StatusCode::BAD_REQUEST,
    );
}

/// A post from another site is rejected and does not invalidate the page.
#[tokio::test]
async fn a_post_from_another_origin_is_rejected() {
    let server = Server::start(|_| {}).await;
    let shown = show(&server).await;
    let cookie = shown.page.cookie();
    let fields = [("user", "mallory"), ("decision", "allow")];
    let other_port = format!("http://127.0.0.1:{}", server.address.port().wrapping_add(1));
    for origin in [
        Some("https://evil.example"),
        Some("null"),
        Some(&*other_port),
        Some(""),
        None,
    ] {
        let mut headers = vec![FORM, ("cookie", &*cookie)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        assert_rejected(
            &shown.post(&server, &headers, &fields).await,
            StatusCode::FORBIDDEN,
        );
    }
    assert_eq!(
        shown.submit(&server, "allow").await.status,
        StatusCode::SEE_OTHER
    );
}

/// A ticket is valid only in the browser to which the page was sent.
#[tokio::test]
async fn a_post_from_another_browser_is_rejected() {
    let server = Server::start(|_| {}).await;
    let shown = show(&server).await;
    let stranger = show(&server).await.page.cookie();
    assert_ne!(stranger, shown.page.cookie());
    let fields = [("user", "mallory"), ("decision", "allow")];
    for cookie in [
        Some(&*stranger),
        Some("portcullis-consent="),
        Some("other=1"),
        None,
    ] {
        let mut headers = vec![FORM, ("origin", &*shown.origin)];
        headers.extend(cookie.map(|cookie| ("cookie", cookie)));
        assert_rejected(
            &shown.post(&server, &headers, &fields).await,
            StatusCode::BAD_REQUEST,
        );
    }
    assert_eq!(
        shown.submit(&server, "allow").await.status,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn a_forged_ticket_is_rejected() {
    let server = Server::start(|_| {}).await;
    let shown = show(&server).await;
    let cookie = shown.page.cookie();
    let ticket = shown.page.ticket();
    let forged = format!("{}{}", &ticket[..22], "A".repeat(22));
    for ticket in ["", "short", &forged, &"é".repeat(22)] {
        let form = encoded(&[("user", "alice"), ("decision", "allow"), ("ticket", ticket)]);
        let headers = [FORM, ("origin", &*shown.origin), ("cookie", &*cookie)];
        let response = server
            .send(Method::POST, "/authorize/consent", &headers, &form)
            .await;
        assert_rejected(&response, StatusCode::BAD_REQUEST);
    }
    assert_eq!(
        shown.submit(&server, "allow").await.status,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn a_page_expires_after_ten_minutes() {
    let server = Server::start(|_| {}).await;
    let (shown, answered) = (show(&server).await, show(&server).await);
    server.clock.advance(Duration::from_secs(599));
    assert_eq!(
        answered.submit(&server, "allow").await.status,
        StatusCode::SEE_OTHER
    );
    server.clock.advance(Duration::from_secs(1));
    assert_rejected(
        &shown.submit(&server, "allow").await,
        StatusCode::BAD_REQUEST,
    );
}

#[tokio::test]
async fn several_pages_can_be_open_in_one_browser() {
    let server = Server::start(|_| {}).await;
    let client = server.register().await;
    let first = show(&server).await;
    let cookie = first.page.cookie();
    let path = format!(
        "/authorize?{}",
        encoded(&authorization_request(&client, verifier().challenge()))
    );
    let second = server
        .send(
            Method::GET,
            &path,
            &[("cookie", &format!("a=b; {cookie}"))],
            "",
        )
        .await;
    assert_eq!(second.cookie(), cookie);
    assert_eq!(
        first.submit(&server, "allow").await.status,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn an_invalid_submission_can_be_corrected() {
    let server = Server::start(|_| {}).await;
    let shown = show(&server).await;
    let cookie = shown.page.cookie();
    let headers = [FORM, ("origin", &*shown.origin), ("cookie", &*cookie)];
    for fields in [
        [("user", ""), ("decision", "allow")],
        [("user", "a\u{7}"), ("decision", "allow")],
        [("user", "a"), ("decision", "maybe")],
    ] {
        assert_rejected(
            &shown.post(&server, &headers, &fields).await,
            StatusCode::BAD_REQUEST,
        );
    }
    assert_eq!(
        shown.submit(&server, "allow").await.status,
        StatusCode::SEE_OTHER
    );
}
