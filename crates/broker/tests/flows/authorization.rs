//! Attacks on authorization requests (AU).

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::json;

use crate::support::{
    Browser, Client, ISSUER, RESOURCE, Setup, claims, encode, json_of, location, param, request,
    resource, text_of,
};

const OTHER: &str = "https://mcp.example.com/other";

/// Returns the request of a client with some parameters replaced. An empty value removes one.
fn changed(client: &Client, changes: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let mut params = client.request();
    for (name, value) in changes {
        params.retain(|(found, _)| found != name);
        if !value.is_empty() {
            params.push((name, (*value).to_owned()));
        }
    }
    params
}

/// Asserts that the answer is a page that leads nowhere.
fn assert_page(response: &Response<Bytes>, attack: &str) {
    assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{attack}");
    assert!(!response.headers().contains_key("location"), "{attack}");
    let text = text_of(response);
    assert!(text.starts_with("<!doctype html>"), "{attack}: {text}");
    assert!(!text.contains("http-equiv"), "{attack}");
    assert!(!text.contains("href="), "{attack}");
}

/// Returns the error at the client, after checking that `state` and `iss` come with it.
fn error_at_client(response: &Response<Bytes>) -> String {
    let target = location(response);
    assert!(
        target
            .as_str()
            .starts_with("http://127.0.0.1:4321/callback?")
    );
    assert_eq!(param(&target, "state").as_deref(), Some("client-state"));
    assert_eq!(param(&target, "iss").as_deref(), Some(ISSUER));
    assert_eq!(param(&target, "code"), None);
    param(&target, "error").unwrap()
}

/// AU1: a redirect URI that is similar to the registered one is refused.
#[tokio::test]
async fn similar_redirect_uris() {
    let setup = Setup::with(|settings| {
        settings.clients.redirect_hosts = vec!["app.example".into()];
    });
    let client = setup
        .client_with(json!({
            "redirect_uris": [
                "https://app.example/callback", "http://127.0.0.1:4321/callback",
            ],
            "token_endpoint_auth_method": "none",
        }))
        .await;
    let mut browser = Browser::new(&setup);
    for uri in [
        "https://app.example/callback/",
        "https://app.example/Callback",
        "https://APP.example/callback",
        "HTTPS://app.example/callback",
        "https://app.example:443/callback",
        "https://app.example./callback",
        "https://app.example/callback?",
        "https://app.example/callback?a=b",
        "https://app.example/callback#",
        "https://app.example/callback#a",
        "https://app.example/%63allback",
        "https://app.example/x/../callback",
        "https://app.example/callback/../callback",
        "https://app.example//callback",
        "https://app.example\\@attacker.example/callback",
        "https://app.example@attacker.example/callback",
        "https://user:pw@app.example/callback",
        "https://attacker.example/callback",
        "https://sub.app.example/callback",
        "https://app.example/callback\u{0}",
        "https://app.example/callback%00",
        "https://app.example/callback\r\nLocation: https://attacker.example",
        " https://app.example/callback",
        "//app.example/callback",
        "javascript:https://app.example/callback",
        "http://app.example/callback",
        "http://127.0.0.1:4321/callback/",
        "http://127.0.0.1:4321/",
        "http://127.0.0.1:4321/callback?a=b",
        "http://127.0.0.1:4321@attacker.example/callback",
        "http://127.0.0.1:4321.attacker.example/callback",
        "http://localhost:4321/callback",
        "http://[::1]:4321/callback",
        "http://127.0.0.2:4321/callback",
        "http://127.1:4321/callback",
        "http://0x7f000001:4321/callback",
        "http://127.0.0.1.:4321/callback",
        "https://127.0.0.1:4321/callback",
        "http://127.0.0.1:99999/callback",
        "http://127.0.0.1:-1/callback",
    ] {
        let params = changed(&client, &[("redirect_uri", uri)]);
        assert_page(&browser.authorize(&params).await, uri);
    }
    for port in [
        "http://127.0.0.1/callback",
        "http://127.0.0.1:65535/callback",
    ] {
        let params = changed(&client, &[("redirect_uri", port)]);
        let page = browser.authorize(&params).await;
        assert_eq!(page.status(), StatusCode::OK, "{port}");
        let target = continued_denial(&mut browser, &page).await;
        assert!(target.starts_with(port), "{target}");
    }
}

async fn continued_denial(browser: &mut Browser<'_>, page: &Response<Bytes>) -> String {
    let denied = browser.decide(page, "deny").await;
    crate::support::continued(&denied).to_string()
}

/// AU2: nothing is redirected before client and redirect URI are valid, also with other errors.
#[tokio::test]
async fn an_open_redirector() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let foreign = "https://attacker.example/";
    for (name, params) in [
        ("foreign", changed(&client, &[("redirect_uri", foreign)])),
        (
            "unknown client",
            changed(&client, &[("client_id", "other")]),
        ),
        ("no client", changed(&client, &[("client_id", "")])),
        (
            "foreign and an invalid type",
            changed(
                &client,
                &[("redirect_uri", foreign), ("response_type", "token")],
            ),
        ),
        (
            "unknown client with a foreign URI",
            changed(&client, &[("client_id", "x"), ("redirect_uri", foreign)]),
        ),
        (
            "unknown client with a request object",
            changed(&client, &[("client_id", "x"), ("request_uri", foreign)]),
        ),
    ] {
        assert_page(&browser.authorize(&params).await, name);
    }
    let params = changed(&client, &[("response_type", "token")]);
    let error = error_at_client(&browser.authorize(&params).await);
    assert_eq!(error, "unsupported_response_type");
}

/// AU3: PKCE with S256 is required.
#[tokio::test]
async fn pkce_is_removed_or_weakened() {
    let setup = Setup::new();
    let client = setup.client().await;
    let verifier = client.verifier.secret().to_owned();
    let challenge = client.verifier.challenge().as_str().to_owned();
    let mut browser = Browser::new(&setup);
    for changes in [
        vec![("code_challenge", ""), ("code_challenge_method", "")],
        vec![("code_challenge", "")],
        vec![("code_challenge_method", "")],
        vec![
            ("code_challenge_method", "plain"),
            ("code_challenge", &verifier),
        ],
        vec![("code_challenge_method", "s256")],
        vec![("code_challenge_method", "S512")],
        vec![("code_challenge", &challenge[1..])],
        vec![(
            "code_challenge",
            "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        )],
        vec![(
            "code_challenge",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
        )],
    ] {
        let response = browser.authorize(&changed(&client, &changes)).await;
        assert_eq!(error_at_client(&response), "invalid_request", "{changes:?}");
    }
    let doubled = format!("{challenge}{challenge}");
    let params = changed(&client, &[("code_challenge", &doubled)]);
    assert_eq!(
        error_at_client(&browser.authorize(&params).await),
        "invalid_request"
    );
}

/// AU4: only a code is delivered, and only in the query.
#[tokio::test]
async fn other_response_types_and_modes() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for (name, value, expected) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "id_token", "unsupported_response_type"),
        ("response_type", "code token", "unsupported_response_type"),
        (
            "response_type",
            "code id_token",
            "unsupported_response_type",
        ),
        ("response_type", "none", "unsupported_response_type"),
        ("response_type", "CODE", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("response_mode", "fragment", "invalid_request"),
        ("response_mode", "form_post", "invalid_request"),
        ("response_mode", "query.jwt", "invalid_request"),
        ("response_mode", "web_message", "invalid_request"),
    ] {
        let response = browser.authorize(&changed(&client, &[(name, value)])).await;
        assert_eq!(error_at_client(&response), expected, "{name} {value}");
    }
    let params = changed(&client, &[("response_mode", "query")]);
    assert_eq!(browser.authorize(&params).await.status(), StatusCode::OK);
}

/// AU5: repeated parameters are refused, with the same value, too.
#[tokio::test]
async fn repeated_parameters() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    let mut all = client.request();
    all.push(("scope", "mcp:tools".to_owned()));
    all.push(("response_mode", "query".to_owned()));
    for (name, value) in &all {
        for second in [value.as_str(), "other"] {
            let mut params = all.clone();
            params.push((name, second.to_owned()));
            let response = browser.authorize(&params).await;
            match *name {
                "client_id" | "redirect_uri" => assert_page(&response, name),
                name => {
                    let error = param(&location(&response), "error").unwrap();
                    let expected = match name {
                        "resource" => "invalid_target",
                        _ => "invalid_request",
                    };
                    assert_eq!(error, expected, "{name}");
                }
            }
        }
    }
    for (name, value) in [
        ("code", "a"),
        ("client_id", "a"),
        ("grant_type", "authorization_code"),
    ] {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client.id.as_str()),
            ("code", "a"),
            ("code_verifier", client.verifier.secret()),
            (name, value),
        ];
        let response = setup.post("/oauth/token", &fields).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{name}");
        assert_eq!(json_of(&response)["error"], "invalid_request", "{name}");
    }
}

/// AU6: request objects are neither read nor fetched.
#[tokio::test]
async fn request_objects() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for (name, value, expected) in [
        ("request", "e30.e30.", "request_not_supported"),
        (
            "request_uri",
            "https://attacker.example/request",
            "request_uri_not_supported",
        ),
        (
            "request_uri",
            "urn:ietf:params:oauth:request_uri:a",
            "request_uri_not_supported",
        ),
    ] {
        let response = browser.authorize(&changed(&client, &[(name, value)])).await;
        assert_eq!(error_at_client(&response), expected);
    }
    assert!(setup.network.urls().is_empty());
    let pushed = setup.post("/oauth/par", &[("client_id", &client.id)]).await;
    assert_eq!(pushed.status(), StatusCode::NOT_FOUND);
}

/// AU7, OR7: with one resource, `resource` may be absent or imprecise, and never another one.
#[tokio::test]
async fn a_foreign_resource() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for resource in [
        "https://attacker.example/mcp",
        "https://mcp.example.com.attacker.example/mcp",
        "https://mcp.example.com/other",
        "https://mcp.example.com/mcp/other",
        "https://mcp.example.com:8443/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com/mcp#fragment",
        "https://user@mcp.example.com/mcp",
        "mcp",
        "https://mcp.example.com/other?a=b",
        "https://mcp.example.com/?a=b",
    ] {
        let params = changed(&client, &[("resource", resource)]);
        let error = error_at_client(&browser.authorize(&params).await);
        assert_eq!(error, "invalid_target", "{resource}");
    }
    for resource in [
        "",
        RESOURCE,
        "https://mcp.example.com",
        "https://mcp.example.com/",
        "https://mcp.example.com/mcp/",
        "https://mcp.example.com/mcp?session=1",
    ] {
        let params = changed(&client, &[("resource", resource)]);
        let page = browser.authorize(&params).await;
        assert_eq!(page.status(), StatusCode::OK, "{resource}");
        let url = browser.approve(&page).await;
        let target = location(&browser.return_from(&url).await);
        let code = param(&target, "code").unwrap();
        let tokens = json_of(&setup.exchange(&client, &code).await);
        assert_eq!(claims(&tokens)["aud"], RESOURCE, "{resource}");
    }
}

/// AU7: with two resources, a request names one of them, unless there is a default.
#[tokio::test]
async fn an_ambiguous_resource() {
    let two = Setup::with(|settings| settings.resources.push(resource(OTHER)));
    let with_default = Setup::with(|settings| {
        settings.resources.push(resource(OTHER));
        settings.default_resource = Some(1);
    });
    let client = two.client().await;
    for ambiguous in [
        "",
        "https://mcp.example.com",
        "https://mcp.example.com/mcp?a=b",
    ] {
        let params = changed(&client, &[("resource", ambiguous)]);
        let response = Browser::new(&two).authorize(&params).await;
        assert_eq!(error_at_client(&response), "invalid_target", "{ambiguous}");
    }
    let client = with_default.client().await;
    for (requested, expected) in [("", OTHER), (RESOURCE, RESOURCE), (OTHER, OTHER)] {
        let mut browser = Browser::new(&with_default);
        let params = changed(&client, &[("resource", requested)]);
        let page = browser.authorize(&params).await;
        assert!(text_of(&page).contains(expected), "{requested}");
        let url = browser.approve(&page).await;
        let target = location(&browser.return_from(&url).await);
        let code = param(&target, "code").unwrap();
        let tokens = json_of(&with_default.exchange(&client, &code).await);
        assert_eq!(claims(&tokens)["aud"], expected);
    }
    let params = changed(&client, &[("resource", "https://mcp.example.com")]);
    let response = Browser::new(&with_default).authorize(&params).await;
    assert_eq!(error_at_client(&response), "invalid_target");
}

/// AU8: only scopes of the resource are granted, and the response names them.
#[tokio::test]
async fn a_client_that_asks_for_all_scopes() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for (scope, expected) in [
        ("", "mcp:tools"),
        ("mcp:tools mcp:root", "mcp:tools"),
        (
            "mcp:tools mcp:admin offline_access openid",
            "mcp:admin mcp:tools",
        ),
        ("offline_access", "mcp:tools"),
        ("openid offline_access", "mcp:tools"),
    ] {
        let page = browser
            .authorize(&changed(&client, &[("scope", scope)]))
            .await;
        assert_eq!(page.status(), StatusCode::OK, "{scope}");
        for name in ["mcp:tools", "mcp:admin", "mcp:root", "offline_access"] {
            let shown = text_of(&page).contains(&format!("<code>{name}</code>"));
            assert_eq!(shown, expected.contains(name), "{name}");
        }
        let url = browser.approve(&page).await;
        let target = location(&browser.return_from(&url).await);
        let code = param(&target, "code").unwrap();
        let tokens = json_of(&setup.exchange(&client, &code).await);
        assert_eq!(tokens["scope"], expected, "{scope}");
        assert_eq!(claims(&tokens)["scope"], expected, "{scope}");
    }
    for scope in [
        "mcp:root",
        "mcp:root offline_access",
        "mcp:tools\u{7f}",
        "\"",
        "MCP:TOOLS",
    ] {
        let response = browser
            .authorize(&changed(&client, &[("scope", scope)]))
            .await;
        assert_eq!(error_at_client(&response), "invalid_scope", "{scope}");
    }
}

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
    for absent in [
        "prompt",
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

/// AU2: what is not an endpoint is not found, also with a similar path.
#[tokio::test]
async fn paths_that_are_similar_to_endpoints() {
    let setup = Setup::new();
    for path in [
        "/oauth/",
        "/oauth/authorize/",
        "/oauth/Authorize",
        "/oauth//authorize",
        "/oauth/%61uthorize",
        "/oauth/authorize;a=b",
        "/oauth/../oauth/authorize",
        "/oauth/callback",
        "/oauth/callback/",
        "/oauth/callback/other",
        "/oauth/callback/idp/",
        "/oauth/callback/IDP",
        "/oauth/introspect",
        "/oauth/device_authorization",
        "/oauth/userinfo",
    ] {
        let response = setup.get(path).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let long = format!("/oauth/authorize?state={}", "a".repeat(9000));
    let status = setup.get(&long).await.status();
    assert_eq!(status, StatusCode::URI_TOO_LONG);
}
