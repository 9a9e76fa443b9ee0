//! Hostile servers, over real sockets and with the production fetcher.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use portcullis_client::AutoConsent;

mod site;

use site::{METADATA, PRM, Site, fetcher, redirect};

#[tokio::test]
async fn a_valid_server_is_accepted() {
    let site = Site::new().await;
    assert_eq!(site.error_code().await, None);
    assert!(site.was_requested("/token"));
}

/// G1, G3: the well-known URLs are tried in the specified order.
#[tokio::test]
async fn well_known_urls_are_tried_in_order() {
    let site = Site::new().await;
    let base = site.base.clone();
    let path = "/tenant/.well-known/openid-configuration";
    site.challenge("Bearer realm=\"mcp\"");
    site.remove(PRM);
    site.remove(METADATA);
    let document =
        format!(r#"{{"resource":"{base}/mcp","authorization_servers":["{base}/tenant"]}}"#);
    site.json("/.well-known/oauth-protected-resource", &document);
    let from = format!("\"issuer\":\"{base}\"");
    site.json(
        path,
        &site
            .metadata()
            .replace(&from, &format!("\"issuer\":\"{base}/tenant\"")),
    );
    let issuer = format!("{base}/tenant");
    site.sign_in(move |state| format!("code=c&state={state}&iss={issuer}"))
        .await
        .unwrap();
    let requested = site.requested.lock().clone();
    let expected = [
        "/mcp",
        PRM,
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        path,
        "/register",
        "/token",
    ];
    assert_eq!(requested, expected);
}

/// G6: URLs with private, link-local and cloud addresses are not fetched, in every member of
/// metadata.
#[tokio::test]
async fn metadata_with_private_addresses_is_rejected() {
    for host in [
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[::ffff:10.0.0.1]",
        "100.64.0.1",
    ] {
        let site = Site::new().await;
        site.challenge(&format!("Bearer resource_metadata=\"https://{host}/meta\""));
        assert_eq!(
            site.error_code().await,
            Some("fetch.refused.address"),
            "{host}"
        );

        let site = Site::new().await;
        let base = &site.base;
        site.json(
            PRM,
            &format!(r#"{{"resource":"{base}/mcp","authorization_servers":["https://{host}"]}}"#),
        );
        assert_eq!(
            site.error_code().await,
            Some("fetch.refused.address"),
            "{host}"
        );

        for (member, code) in [
            ("token_endpoint", "fetch.refused.address"),
            ("registration_endpoint", "fetch.refused.address"),
            ("authorization_endpoint", "server.unsafe_endpoint"),
        ] {
            let site = Site::new().await;
            let from = format!("\"{member}\":\"{}", site.base);
            site.change(&from, &format!("\"{member}\":\"https://{host}"));
            assert_eq!(site.error_code().await, Some(code), "{member} {host}");
        }
    }
}

/// G6, G9, I3: endpoints on other hosts with http, and URLs with other schemes, are neither fetched
/// nor opened.
#[tokio::test]
async fn only_safe_endpoints_are_used() {
    for (member, url, code) in [
        (
            "token_endpoint",
            "http://auth.example.com/token",
            "discovery.insecure_endpoint",
        ),
        (
            "registration_endpoint",
            "http://auth.example.com/register",
            "discovery.insecure_endpoint",
        ),
        (
            "authorization_endpoint",
            "http://auth.example.com/authorize",
            "discovery.insecure_endpoint",
        ),
        (
            "authorization_endpoint",
            "https://user@auth.example.com/authorize",
            "server.unsafe_endpoint",
        ),
        (
            "authorization_endpoint",
            "javascript:alert(1)",
            "discovery.document",
        ),
        (
            "authorization_endpoint",
            "file:///etc/passwd",
            "discovery.document",
        ),
        (
            "authorization_endpoint",
            "vscode://open?x",
            "discovery.document",
        ),
        ("token_endpoint", "file:///etc/passwd", "discovery.document"),
    ] {
        let site = Site::new().await;
        let path = match member {
            "token_endpoint" => "/token",
            "registration_endpoint" => "/register",
            _ => "/authorize",
        };
        let from = format!("\"{member}\":\"{}{path}\"", site.base);
        site.change(&from, &format!("\"{member}\":\"{url}\""));
        assert_eq!(site.error_code().await, Some(code), "{member} {url}");
    }

    // Unused endpoints are checked, too. Neither a registration nor a sign-in follows.
    for member in [
        "introspection_endpoint",
        "revocation_endpoint",
        "jwks_uri",
        "device_authorization_endpoint",
    ] {
        let site = Site::new().await;
        site.change(
            "\"issuer\"",
            &format!("\"{member}\":\"http://auth.example.com/x\",\"issuer\""),
        );
        assert_eq!(
            site.error_code().await,
            Some("discovery.insecure_endpoint"),
            "{member}"
        );
        assert!(!site.was_requested("/register"));
        assert!(!site.was_requested("/token"));
    }
}

/// H4: a registration with other redirect URIs is not used.
#[tokio::test]
async fn a_registration_with_other_redirect_uris_is_not_used() {
    for redirects in ["[]", r#"["https://evil.example/callback"]"#] {
        let site = Site::new().await;
        site.json(
            "/register",
            &format!(r#"{{"client_id":"c","redirect_uris":{redirects}}}"#),
        );
        assert_eq!(
            site.error_code().await,
            Some("client.redirect_not_registered"),
            "{redirects}"
        );
        assert!(!site.was_requested("/token"));
    }
}

/// H4: metadata that names the whole origin as the resource of a path is rejected unless the caller
/// accepts it.
#[tokio::test]
async fn a_broader_resource_is_rejected() {
    let site = Site::new().await;
    let base = &site.base;
    site.json(
        PRM,
        &format!(r#"{{"resource":"{base}/","authorization_servers":["{base}"]}}"#),
    );
    assert_eq!(site.error_code().await, Some("client.broader_resource"));
    assert!(!site.was_requested("/register"));
    assert!(!site.was_requested("/token"));
}

/// G6: redirects are not followed.
#[tokio::test]
async fn redirects_are_not_followed() {
    for to in ["https://10.0.0.1/", "/elsewhere"] {
        let site = Site::new().await;
        site.put("/mcp", redirect(to), b"");
        assert_eq!(site.error_code().await, Some("client.redirected"));
        assert!(!site.was_requested("/elsewhere"));
        for (path, code) in [
            (PRM, "discovery.not_found"),
            (METADATA, "discovery.not_found"),
            ("/register", "client.status"),
            ("/token", "client.status"),
        ] {
            let site = Site::new().await;
            site.put(path, redirect(to), b"");
            assert_eq!(site.error_code().await, Some(code), "{path}");
            assert!(!site.was_requested("/elsewhere"));
        }
    }
}

/// G2, G4: documents of another resource or issuer are rejected, even with similar URLs.
#[tokio::test]
async fn documents_of_others_are_rejected() {
    let site = Site::new().await;
    let base = &site.base;
    for resource in [
        "https://mcp.example.com/mcp",
        &format!("{base}/other"),
        &format!("{base}/mcp-2"),
    ] {
        site.json(
            PRM,
            &format!(r#"{{"resource":"{resource}","authorization_servers":["{base}"]}}"#),
        );
        assert_eq!(
            site.error_code().await,
            Some("discovery.resource_mismatch"),
            "{resource}"
        );
    }
    let site = Site::new().await;
    let own = format!("\"issuer\":\"{}\"", site.base);
    for issuer in ["https://auth.example.com", &format!("{}/", site.base)] {
        site.change(&own, &format!("\"issuer\":\"{issuer}\""));
        assert_eq!(
            site.error_code().await,
            Some("discovery.issuer_mismatch"),
            "{issuer}"
        );
    }
    assert!(!site.was_requested("/token"));
}

/// Endless bodies, compressed bodies, and members of other types are errors.
#[tokio::test]
async fn malformed_bodies_are_bounded() {
    let endless =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
            .to_vec();
    let without_length = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec();

    // Bodies are not decompressed, so they cannot expand.
    let compressed =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    for path in [PRM, METADATA, "/register", "/token"] {
        for (response, more) in [
            (&endless, &b"{\"a\":\"aaaaaaaaaaaaaaaa"[..]),
            (&without_length, &[b' '; 4096]),
        ] {
            let site = Site::new().await;
            site.put(path, response.clone(), more);
            assert_eq!(site.error_code().await, Some("fetch.too_large"), "{path}");
        }
        let site = Site::new().await;
        site.put(path, compressed.clone(), b"");
        let code = if path.starts_with("/.well-known") {
            "discovery.not_found"
        } else {
            "client.document"
        };
        assert_eq!(site.error_code().await, Some(code), "{path}");

        for body in [
            "[]",
            "7",
            "null",
            r#"{"resource":7,"issuer":[],"client_id":{},"access_token":true}"#,
        ] {
            let site = Site::new().await;
            site.json(path, body);
            let code = if path.starts_with("/.well-known") {
                "discovery.document"
            } else {
                "client.document"
            };
            assert_eq!(site.error_code().await, Some(code), "{path} {body}");
        }
    }
}

/// A challenge of 10 MB is an error.
#[tokio::test]
async fn an_oversized_challenge_is_bounded() {
    let site = Site::new().await;
    site.challenge(&format!(
        "Bearer realm=\"{}\"",
        "a".repeat(10 * 1024 * 1024)
    ));
    assert_eq!(site.error_code().await, Some("fetch.interrupted"));
    assert!(!site.was_requested(METADATA));
}

/// I2: with a wrong or missing `iss`, or a wrong state, the code is not sent.
#[tokio::test]
async fn the_code_of_an_invalid_redirect_is_not_sent() {
    type Redirect = fn(&str, &str) -> String;
    let redirects: [(Redirect, &str); 5] = [
        (
            |state, _| format!("code=theirs&state={state}&iss=https://evil.example"),
            "response.issuer_mismatch",
        ),
        (
            |state, base| format!("code=theirs&state={state}&iss={base}/"),
            "response.issuer_mismatch",
        ),
        (
            |state, _| format!("code=theirs&state={state}"),
            "response.issuer_missing",
        ),
        (
            |state, _| format!("error=server_error&state={state}&iss=https://evil.example"),
            "response.issuer_mismatch",
        ),
        (
            |state, base| format!("state={state}&iss={base}"),
            "redirect.no_code",
        ),
    ];
    for (redirect, code) in redirects {
        let site = Site::new().await;
        let base = site.base.clone();
        let result = site.sign_in(move |state| redirect(state, &base)).await;
        assert_eq!(result.unwrap_err().code(), code);
        assert!(!site.was_requested("/token"));
    }

    // With a server that consents automatically, the state is checked, too.
    let site = Site::new().await;
    let base = site.base.clone();
    site.put(
        "/authorize",
        redirect(&format!(
            "http://127.0.0.1/callback?code=c&state=other&iss={base}"
        )),
        b"",
    );
    let result = site.authorize(Arc::new(AutoConsent::new(fetcher()))).await;
    assert_eq!(result.unwrap_err().code(), "redirect.state");

    site.put("/authorize", redirect("javascript:alert(1)"), b"");
    let result = site.authorize(Arc::new(AutoConsent::new(fetcher()))).await;
    assert_eq!(
        result.unwrap_err().code(),
        "interaction.redirected_elsewhere"
    );
    assert!(!site.was_requested("/token"));
}
