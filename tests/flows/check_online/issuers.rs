//! Broken issuers.

use http::header;
use portcullis_scenarios::{Peer, Upstream};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{INTROSPECTION, Setup, issuer, status, with_member};

/// J9: the client authenticates as it does in the server: the methods of the token endpoint do not apply.
#[tokio::test]
async fn the_client_authenticates_as_in_the_server() {
    let upstream = Upstream::start().await;
    let server = issuer(|request| match &request.authorization {
        Some(basic) if request.path == "/introspect" && basic.starts_with("Basic ") => {
            Some(request.json(json!({ "active": false })))
        }
        _ => with_member(request, "token_endpoint_auth_methods_supported", json!(["client_secret_basic"])),
    });
    let server = server.await;
    let in_form = Setup::new(&server.url(""), &upstream.setting()).issuer(INTROSPECTION);
    in_form.assert_sound("in the form").await;
    let wrong = INTROSPECTION.replace("\"SECRET\"", "\"WRONG_SECRET\"");
    let setup = Setup::new(&server.url(""), &upstream.setting()).issuer(&wrong);
    setup.assert_cause("rejected", "introspection.client", &["introspection_auth = \"basic\""]).await;
}

/// J9: the first cause of a broken issuer is named, with the fix.
#[tokio::test]
async fn broken_issuers() {
    let upstream = Upstream::start().await;
    let setting = upstream.setting();
    let at = |server: &Peer| Setup::new(&server.url(""), &setting);
    let sound = issuer(|_| None).await;

    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    Setup::new(&format!("http://{gone}"), &setting)
        .assert_cause("gone", "connection.reachable", &["cannot connect", "start"])
        .await;
    let setup = Setup::new("https://issuer.invalid", &setting);
    setup.assert_cause("no such host", "connection.reachable", &["resolved", "issuer.invalid"]).await;

    let setup = Setup::new(&format!("https://{}", sound.address()), &setting);
    setup.assert_cause("no TLS", "connection.tls", &["TLS"]).await;
    let setup = Setup::new(&sound.url("/"), &setting);
    let exact = format!("write issuer[0].issuer = \"{}\"", sound.url(""));
    setup.assert_cause("a trailing slash", "issuer.identity", &[&exact, "exactly"]).await;

    let setup = Setup::new(&sound.url("/realms/prod"), &setting);
    setup.assert_cause("another path", "issuer.found", &["/realms/prod", &exact]).await;

    for (case, member, value, more, rule, words) in [
        ("http behind a proxy", "issuer", json!("https://127.0.0.1:1"), "", "issuer.identity", &["public address"][..]),
        (
            "another host",
            "issuer",
            json!("https://keycloak:8443"),
            "",
            "issuer.identity",
            &["https://keycloak:8443", "if tokens"],
        ),
        (
            "insecure",
            "token_endpoint",
            json!("http://keycloak:8080/t"),
            "",
            "issuer.endpoints",
            &["token_endpoint", "https"],
        ),
        ("no keys", "jwks_uri", Value::Null, "", "keys.found", &["no jwks_uri", "set jwks_uri of issuer[0]"]),
        ("keys elsewhere", "jwks_uri", json!("https://keys.invalid/"), "", "connection.reachable", &["keys.invalid"]),
        (
            "no introspection",
            "introspection_endpoint",
            Value::Null,
            INTROSPECTION,
            "introspection.found",
            &["validate = \"jwt\""],
        ),
    ] {
        let value = value.clone();
        let server = issuer(move |request| with_member(request, member, value.clone())).await;
        at(&server).issuer(more).assert_cause(case, rule, words).await;
    }

    for (case, path, response, more, rule, words) in [
        ("a failing server", "", status(503, ""), "", "issuer.found", &["503", "log"][..]),
        ("no keys yet", "/jwks", status(404, ""), "", "keys.found", &["404", "jwks_uri"]),
        (
            "a web page",
            "/jwks",
            status(200, "<html><title>Sign in</title>"),
            "",
            "keys.document",
            &["web page", "Sign in"],
        ),
        ("an empty set", "/jwks", status(200, "{\"keys\":[]}"), "", "keys.usable", &["HS256", "introspection"]),
        ("a broken endpoint", "/introspect", status(500, ""), INTROSPECTION, "introspection.response", &["500"]),
        (
            "all tokens",
            "/introspect",
            status(200, "{\"active\":true}"),
            INTROSPECTION,
            "introspection.response",
            &["made-up"],
        ),
        (
            "a page",
            "/introspect",
            status(200, "<html>"),
            INTROSPECTION,
            "introspection.response",
            &["introspection_endpoint"],
        ),
    ] {
        let status = response.status().as_u16();
        let body = response.into_body();
        let server = issuer(move |request| {
            let is_meant = request.path == path || (path.is_empty() && request.path.starts_with("/.well-known"));
            is_meant.then(|| super::status(status, body.clone()))
        });
        at(&server.await).issuer(more).assert_cause(case, rule, words).await;
    }

    let other = at(&sound).issuer("algorithms = [\"ES256\"]\n");
    other.assert_cause("algorithms", "keys.usable", &["no key is for ES256", "algorithms = [\"RS256\"]"]).await;
    let wrong = INTROSPECTION.replace("\"SECRET\"", "\"WRONG_SECRET\"");
    let setup = at(&sound).issuer(&wrong);
    setup
        .assert_cause("a wrong secret", "introspection.client", &["invalid_client", "client_secret of issuer[0]"])
        .await;
    let basic = issuer(|request| {
        let is_basic = request.authorization.as_deref().is_some_and(|value| value.starts_with("Basic "));
        (request.path == "/introspect" && is_basic).then(|| request.json(json!({ "active": false }))).or_else(|| {
            (request.path == "/introspect").then(|| status(401, json!({ "error": "invalid_client" }).to_string()))
        })
    });
    let setup = at(&basic.await).issuer(INTROSPECTION);
    setup.assert_cause("basic", "introspection.client", &["introspection_auth = \"basic\""]).await;

    for (case, date) in
        [("a clock ahead", "Sun, 06 Nov 2044 08:49:37 GMT"), ("behind", "Sun, 06 Nov 1994 08:49:37 GMT")]
    {
        let server = issuer(move |request| {
            let mut response = with_member(request, "x", json!(1))?;
            response.headers_mut().insert(header::DATE, header::HeaderValue::from_static(date));
            Some(response)
        });
        at(&server.await).assert_cause(case, "clock.difference", &["NTP"]).await;
    }
    let setup = at(&sound).resource("scopes_supported = [\"mcp:tools\", \"mcp:missing\"]\n");
    let (finished, report) = setup.json().await;
    assert_eq!(finished.code, Some(0), "{report:#}");
    assert_eq!(report["online"]["summary"]["warnings"], 1, "{report:#}");
    assert_eq!(setup.run(&["--deny-warnings"]).await.code, Some(2));
}
