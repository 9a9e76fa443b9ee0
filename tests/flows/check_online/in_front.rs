//! Firewalls, logins and redirects in front of issuers, and an issuer that is a template for all
//! tenants.

use http::{Response, header};
use portcullis_scenarios::{PeerResponse, Upstream};
use serde_json::json;

use super::{INTROSPECTION, Setup, issuer, status, with_member};

/// The page of a firewall that clients without a browser cannot pass.
fn challenge_page() -> PeerResponse {
    Response::builder()
        .status(403)
        .header(header::CONTENT_TYPE, "text/html")
        .header("cf-mitigated", "challenge")
        .body("<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>".to_owned())
        .unwrap()
}

/// J9: a firewall in front of the metadata, the keys or the introspection endpoint is the cause,
/// and not their configuration.
#[tokio::test]
async fn firewalls() {
    let upstream = Upstream::start().await;
    let metadata = issuer(|request| request.is_for_server_metadata().then(challenge_page)).await;
    let setup = Setup::new(&metadata.url(""), &upstream.setting());
    setup
        .assert_cause(
            "metadata",
            "issuer.found",
            &["firewall (Cloudflare)", "let the firewall pass"],
        )
        .await;
    let keys = issuer(|request| (request.path == "/jwks").then(challenge_page)).await;
    let setup = Setup::new(&keys.url(""), &upstream.setting());
    setup
        .assert_cause(
            "keys",
            "keys.found",
            &["firewall (Cloudflare)", "let the firewall pass"],
        )
        .await;
    let introspection =
        issuer(|request| (request.path == "/introspect").then(challenge_page)).await;
    let setup = Setup::new(&introspection.url(""), &upstream.setting()).issuer(INTROSPECTION);
    setup
        .assert_cause(
            "introspection",
            "introspection.response",
            &["firewall", "let the firewall pass"],
        )
        .await;
}

/// J9: metadata behind a login or a redirect, and a template for all tenants, have their own fixes.
#[tokio::test]
async fn logins_redirects_and_templates() {
    let upstream = Upstream::start().await;
    let protected =
        issuer(|request| request.is_for_server_metadata().then(|| status(401, ""))).await;
    let setup = Setup::new(&protected.url(""), &upstream.setting());
    setup
        .assert_cause(
            "a login",
            "issuer.found",
            &["401 Unauthorized", "answer there without authorization"],
        )
        .await;

    let moved = issuer(|request| {
        let target = "https://auth.example.com/.well-known/openid-configuration";
        let redirect = Response::builder()
            .status(301)
            .header(header::LOCATION, target)
            .body(String::new())
            .unwrap();
        request.is_for_server_metadata().then_some(redirect)
    })
    .await;
    let setup = Setup::new(&moved.url(""), &upstream.setting());
    setup
        .assert_cause(
            "a redirect",
            "issuer.found",
            &["https://auth.example.com", "redirects of metadata"],
        )
        .await;

    let template = json!("https://login.microsoftonline.com/{tenantid}/v2.0");
    let common = issuer(move |request| with_member(request, "issuer", template.clone())).await;
    let setup = Setup::new(&common.url(""), &upstream.setting());
    setup
        .assert_cause(
            "a template",
            "issuer.identity",
            &["the ID of your tenant into issuer[0].issuer"],
        )
        .await;
}
