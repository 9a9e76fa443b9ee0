//! What the authorization endpoint and its pages reveal (AU).

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::json;

use crate::{
    authorization::{OTHER, changed, error_at_client},
    log::Log,
    support::{Browser, ISSUER, Setup, encode, json_of, param, request, resource, text_of},
};

/// AU9, OR4: the issuer comes from the settings, never from the request.
#[tokio::test]
async fn a_foreign_host_header() {
    let setup = Setup::new();
    let client = setup.client().await;
    let send = async |path: &str| {
        let mut headers = HeaderMap::new();
        for name in ["host", "x-forwarded-host", "x-original-host"] {
            headers.insert(name, "attacker.example".parse().unwrap());
        }
        headers.insert("forwarded", "host=attacker.example".parse().unwrap());
        setup
            .send(request(Method::GET, path, headers, Bytes::new()))
            .await
    };
    let metadata = send("/.well-known/oauth-authorization-server").await;
    assert_eq!(json_of(&metadata)["issuer"], ISSUER);
    assert!(!text_of(&metadata).contains("attacker"));
    let params = changed(&client, &[("response_type", "token")]);
    let response = send(&format!("/oauth/authorize?{}", encode(&params))).await;
    error_at_client(&response);
    let page = send(&format!("/oauth/authorize?{}", encode(&client.request()))).await;
    assert!(!text_of(&page).contains("attacker"));
}

/// AU9: the metadata are the same document at each path, and state what the rules require.
#[tokio::test]
async fn metadata_that_differ_by_path() {
    let setup = Setup::with(|settings| settings.resources.push(resource(OTHER)));
    let first = setup.get("/.well-known/oauth-authorization-server").await;
    for base in ["oauth-authorization-server", "openid-configuration"] {
        for suffix in ["", "/mcp", "/other"] {
            let path = format!("/.well-known/{base}{suffix}");
            let response = setup.get(&path).await;
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(response.body(), first.body(), "{path}");
        }
    }
    let metadata = json_of(&first);
    assert_eq!(metadata["issuer"], ISSUER);
    assert_eq!(
        metadata["code_challenge_methods_supported"],
        json!(["S256"])
    );
    assert_eq!(
        metadata["authorization_response_iss_parameter_supported"],
        true
    );
    assert_eq!(metadata["response_types_supported"], json!(["code"]));
    assert_eq!(metadata["response_modes_supported"], json!(["query"]));
    assert_eq!(metadata["client_id_metadata_document_supported"], true);
    assert_eq!(
        metadata["grant_types_supported"],
        json!(["authorization_code", "refresh_token"])
    );
    // OpenID Connect Discovery requires the list, although no ID tokens are issued.
    let algorithms = &metadata["id_token_signing_alg_values_supported"];
    assert_eq!(algorithms, &json!(["ES256"]));
    for absent in ["introspection_endpoint", "userinfo_endpoint"] {
        assert!(metadata.get(absent).is_none(), "{absent}");
    }
    let unknown = setup
        .get("/.well-known/oauth-authorization-server/unknown")
        .await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    assert!(
        !setup
            .broker
            .answers("/.well-known/oauth-authorization-server/unknown")
    );
}

/// AU10: no page or redirect leaks its URL, is stored, or can be framed.
#[tokio::test]
async fn codes_in_caches_and_referrers() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let consent = browser.authorize(&client.request()).await;
    assert_eq!(consent.headers()["referrer-policy"], "same-origin");
    let continuing = browser.decide(&consent, "allow:idp").await;
    assert_eq!(continuing.headers()["referrer-policy"], "no-referrer");
    assert!(!continuing.headers().contains_key("location"));
    let url = crate::support::continued(&continuing);
    *setup.provider.nonce.lock() = param(&url, "nonce").unwrap();
    let redirect = browser.return_from(&url).await;
    assert_eq!(redirect.status(), StatusCode::SEE_OTHER);
    assert_eq!(redirect.headers()["referrer-policy"], "no-referrer");
    let denied = browser.decide(&consent, "deny").await;
    assert!(!denied.headers().contains_key("location"));
    for response in [&consent, &continuing, &redirect, &denied] {
        let headers = response.headers();
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["x-frame-options"], "DENY");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        let text = text_of(response);
        for external in ["src=\"http", "<script", "url(", "@import"] {
            assert!(!text.contains(external), "{external}");
        }
    }
}

/// AU11: scripts of other origins read public documents and tokens, and no page.
#[tokio::test]
async fn scripts_of_other_origins() {
    let setup = Setup::new();
    let client = setup.client().await;
    let query = encode(&client.request());
    for (method, path, expected) in [
        (Method::GET, "/.well-known/oauth-authorization-server", true),
        (Method::GET, "/oauth/jwks", true),
        (Method::POST, "/oauth/register", true),
        (Method::POST, "/oauth/token", true),
        (Method::POST, "/oauth/revoke", true),
        (Method::GET, &format!("/oauth/authorize?{query}"), false),
        (Method::POST, "/oauth/consent", false),
        (Method::GET, "/oauth/callback/idp?state=a&code=b", false),
        (Method::POST, "/oauth/logout/idp", false),
        (Method::POST, "/oauth/introspect", false),
        (Method::GET, "/oauth/unknown", false),
    ] {
        for method in [method, Method::OPTIONS] {
            let mut headers = HeaderMap::new();
            headers.insert("origin", "https://attacker.example".parse().unwrap());
            let preflight = "access-control-request-method";
            headers.insert(preflight, "POST".parse().unwrap());
            let request = request(method.clone(), path, headers, Bytes::new());
            let response = setup.send(request).await;
            let origin = response.headers().get("access-control-allow-origin");
            assert_eq!(origin.is_some(), expected, "{method} {path}");
            assert!(origin.is_none_or(|origin| origin == "*"), "{method} {path}");
            let credentials = "access-control-allow-credentials";
            assert!(!response.headers().contains_key(credentials), "{path}");
        }
    }
}

/// AU12: the client does not choose what the provider is asked.
#[tokio::test]
async fn parameters_for_the_provider() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let params = changed(
        &client,
        &[
            ("prompt", "none"),
            ("login_hint", "victim@example.com"),
            ("acr_values", "weak"),
            ("claims", "{}"),
            ("max_age", "0"),
            ("nonce", "chosen"),
            ("domain_hint", "attacker"),
            ("display", "popup"),
        ],
    );
    let page = browser.authorize(&params).await;
    assert!(!text_of(&page).contains("victim"));
    let url = browser.approve(&page).await;
    // That of the broker, for `offline_access`.
    assert_eq!(param(&url, "prompt").as_deref(), Some("consent"));
    for absent in [
        "login_hint",
        "acr_values",
        "claims",
        "max_age",
        "domain_hint",
    ] {
        assert_eq!(param(&url, absent), None, "{absent}");
    }
    assert_ne!(param(&url, "nonce").as_deref(), Some("chosen"));
    assert_ne!(param(&url, "state").as_deref(), Some("client-state"));
    assert_eq!(
        param(&url, "redirect_uri").as_deref(),
        Some("https://mcp.example.com/oauth/callback/idp")
    );
    assert_eq!(
        param(&url, "code_challenge_method").as_deref(),
        Some("S256")
    );
    assert_ne!(
        param(&url, "code_challenge").as_deref(),
        Some(client.verifier.challenge().as_str())
    );
    for (_, value) in url.query_pairs() {
        assert!(!value.contains(&client.id));
    }
}

/// The reference on a page about a problem is in the log, in one line with a code and the cause.
#[tokio::test]
async fn a_page_about_a_problem_is_in_the_log() {
    let (log, _guard) = Log::here();
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let page = browser.authorize(&client.request()).await;
    browser.cookies.clear();
    let elsewhere = changed(&client, &[("redirect_uri", "https://evil.example/")]);
    let elsewhere = format!("/oauth/authorize?{}", encode(&elsewhere));
    for (response, code, cause) in [
        (
            setup.get("/oauth/callback/idp").await,
            "page.sign_in_unknown",
            "did not start at this server",
        ),
        (
            setup.get("/oauth/authorize?client_id=unknown").await,
            "page.unknown_client",
            "does not know the application",
        ),
        (
            setup.get(&elsewhere).await,
            "page.request_untrusted",
            "not one that the client registered",
        ),
        (
            browser.decide(&page, "allow:idp").await,
            "page.no_cookie",
            "cannot be matched",
        ),
    ] {
        let text = text_of(&response);
        let (_, reference) = text.split_once("give this reference: <code>").unwrap();
        let (reference, _) = reference.split_once("</code>").unwrap();
        let lines = log.lines();
        let about: Vec<_> = lines
            .iter()
            .filter(|line| line.contains(reference))
            .collect();
        assert_eq!(about.len(), 1, "{code}: {lines:?}");
        assert!(
            about[0].contains(code) && about[0].contains(cause),
            "{code}: {about:?}"
        );
    }
}
