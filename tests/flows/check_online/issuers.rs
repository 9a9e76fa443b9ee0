//! Broken issuers: the first cause is named, with the fix.

use http::header;
use portcullis_scenarios::{ReservedPort, Upstream};
use serde_json::{Value, json};

use super::{INTROSPECTION, Setup, issuer, status, with_member};

/// J9: the check authenticates at the introspection endpoint as the server does. The metadata's
/// methods for the token endpoint do not apply.
#[tokio::test]
async fn introspection_is_authenticated_as_in_the_server() {
    let upstream = Upstream::start().await;
    let server = issuer(|request| match &request.authorization {
        Some(basic) if request.path == "/introspect" && basic.starts_with("Basic ") => {
            Some(request.json(json!({ "active": false })))
        }
        _ => with_member(
            request,
            "token_endpoint_auth_methods_supported",
            json!(["client_secret_basic"]),
        ),
    });
    let server = server.await;
    let in_form = Setup::new(&server.url(""), &upstream.setting()).issuer(INTROSPECTION);
    in_form.assert_sound("in the form").await;
    let setup = Setup::new(&server.url(""), &upstream.setting()).issuer(&with_wrong_secret());
    setup
        .assert_cause(
            "rejected",
            "introspection.client",
            &["introspection_auth = \"basic\""],
        )
        .await;
}

/// The introspection settings with a secret that the issuer rejects.
fn with_wrong_secret() -> String {
    INTROSPECTION.replace("\"SECRET\"", "\"WRONG_SECRET\"")
}

/// J9: an issuer that cannot be reached, or not under this name.
#[tokio::test]
async fn unreachable_and_renamed_issuers() {
    let upstream = Upstream::start().await;
    let sound = issuer(|_| None).await;

    let closed = ReservedPort::new();
    let setup = Setup::new(&format!("http://{}", closed.address()), &upstream.setting());
    setup
        .assert_cause(
            "a closed port",
            "connection.reachable",
            &["cannot connect", "start"],
        )
        .await;
    let setup = Setup::new("https://issuer.invalid", &upstream.setting());
    setup
        .assert_cause(
            "an unknown host",
            "connection.reachable",
            &["resolved", "issuer.invalid"],
        )
        .await;
    let setup = Setup::new(&format!("https://{}", sound.address()), &upstream.setting());
    setup
        .assert_cause("no TLS", "connection.tls", &["TLS"])
        .await;

    let exact = format!("write issuer[0].issuer = \"{}\"", sound.url(""));
    let setup = Setup::new(&sound.url("/"), &upstream.setting());
    setup
        .assert_cause("a trailing slash", "issuer.identity", &[&exact, "exactly"])
        .await;
    let setup = Setup::new(&sound.url("/realms/prod"), &upstream.setting());
    setup
        .assert_cause("another path", "issuer.found", &["/realms/prod", &exact])
        .await;
}

/// J9: one member of the metadata is wrong or missing.
#[tokio::test]
async fn wrong_metadata() {
    struct Case {
        name: &'static str,
        member: &'static str,
        /// The member's value; null removes it.
        value: Value,
        settings: &'static str,
        /// The rule of the first cause.
        rule: &'static str,
        /// Words in its text and fix.
        words: &'static [&'static str],
    }

    let cases = [
        Case {
            name: "plain http behind a proxy",
            member: "issuer",
            value: json!("https://127.0.0.1:1"),
            settings: "",
            rule: "issuer.identity",
            words: &["public address"],
        },
        Case {
            name: "another host",
            member: "issuer",
            value: json!("https://keycloak:8443"),
            settings: "",
            rule: "issuer.identity",
            words: &["https://keycloak:8443", "if tokens"],
        },
        Case {
            name: "an insecure endpoint",
            member: "token_endpoint",
            value: json!("http://keycloak:8080/t"),
            settings: "",
            rule: "issuer.endpoints",
            words: &["token_endpoint", "https"],
        },
        Case {
            name: "no keys",
            member: "jwks_uri",
            value: Value::Null,
            settings: "",
            rule: "keys.found",
            words: &["no jwks_uri", "set jwks_uri of issuer[0]"],
        },
        Case {
            name: "keys at an unknown host",
            member: "jwks_uri",
            value: json!("https://keys.invalid/"),
            settings: "",
            rule: "connection.reachable",
            words: &["keys.invalid"],
        },
        Case {
            name: "no introspection",
            member: "introspection_endpoint",
            value: Value::Null,
            settings: INTROSPECTION,
            rule: "introspection.found",
            words: &["validate = \"jwt\""],
        },
    ];
    let upstream = Upstream::start().await;
    for Case {
        name,
        member,
        value,
        settings,
        rule,
        words,
    } in cases
    {
        let server = issuer(move |request| with_member(request, member, value.clone())).await;
        let setup = Setup::new(&server.url(""), &upstream.setting()).issuer(settings);
        setup.assert_cause(name, rule, words).await;
    }
}

/// J9: one endpoint has an unusable response.
#[tokio::test]
async fn unusable_responses() {
    struct Case {
        name: &'static str,
        /// The path of the response; empty for the metadata.
        path: &'static str,
        status: u16,
        body: &'static str,
        settings: &'static str,
        /// The rule of the first cause.
        rule: &'static str,
        /// Words in its text and fix.
        words: &'static [&'static str],
    }

    let cases = [
        Case {
            name: "a failing server",
            path: "",
            status: 503,
            body: "",
            settings: "",
            rule: "issuer.found",
            words: &["503 Service Unavailable", "log"],
        },
        Case {
            name: "no keys yet",
            path: "/jwks",
            status: 404,
            body: "",
            settings: "",
            rule: "keys.found",
            words: &["404 Not Found", "jwks_uri"],
        },
        Case {
            name: "a web page instead of keys",
            path: "/jwks",
            status: 200,
            body: "<html><title>Sign in</title>",
            settings: "",
            rule: "keys.document",
            words: &["web page", "Sign in"],
        },
        Case {
            name: "an empty key set",
            path: "/jwks",
            status: 200,
            body: "{\"keys\":[]}",
            settings: "",
            rule: "keys.usable",
            words: &["HS256", "introspection"],
        },
        Case {
            name: "a failing introspection endpoint",
            path: "/introspect",
            status: 500,
            body: "",
            settings: INTROSPECTION,
            rule: "introspection.response",
            words: &["500 Internal Server Error"],
        },
        Case {
            name: "an introspection endpoint that accepts every token",
            path: "/introspect",
            status: 200,
            body: "{\"active\":true}",
            settings: INTROSPECTION,
            rule: "introspection.response",
            words: &["made-up"],
        },
        Case {
            name: "a web page instead of introspection",
            path: "/introspect",
            status: 200,
            body: "<html>",
            settings: INTROSPECTION,
            rule: "introspection.response",
            words: &["introspection_endpoint"],
        },
    ];
    let upstream = Upstream::start().await;
    for Case {
        name,
        path,
        status,
        body,
        settings,
        rule,
        words,
    } in cases
    {
        let server = issuer(move |request| {
            let is_broken = request.path == path
                || (path.is_empty() && request.path.starts_with("/.well-known"));
            is_broken.then(|| super::status(status, body))
        })
        .await;
        let setup = Setup::new(&server.url(""), &upstream.setting()).issuer(settings);
        setup.assert_cause(name, rule, words).await;
    }
}

/// J9: settings that do not fit the issuer.
#[tokio::test]
async fn unsuitable_settings() {
    let upstream = Upstream::start().await;
    let sound = issuer(|_| None).await;
    let with_settings =
        |settings: &str| Setup::new(&sound.url(""), &upstream.setting()).issuer(settings);
    let setup = with_settings("algorithms = [\"ES256\"]\n");
    setup
        .assert_cause(
            "algorithms",
            "keys.usable",
            &["no key is for ES256", "algorithms = [\"RS256\"]"],
        )
        .await;
    let setup = with_settings(&with_wrong_secret());
    let words = ["invalid_client", "client_secret of issuer[0]"];
    setup
        .assert_cause("a wrong secret", "introspection.client", &words)
        .await;

    let with_basic_only = issuer(|request| {
        let is_basic = request
            .authorization
            .as_deref()
            .is_some_and(|value| value.starts_with("Basic "));
        match request.path.as_str() {
            "/introspect" if is_basic => Some(request.json(json!({ "active": false }))),
            "/introspect" => Some(status(
                401,
                json!({ "error": "invalid_client" }).to_string(),
            )),
            _ => None,
        }
    })
    .await;
    let setup = Setup::new(&with_basic_only.url(""), &upstream.setting()).issuer(INTROSPECTION);
    setup
        .assert_cause(
            "only basic",
            "introspection.client",
            &["introspection_auth = \"basic\""],
        )
        .await;
}

/// J9: clocks that differ.
#[tokio::test]
async fn clock_differences() {
    let upstream = Upstream::start().await;
    for (name, date) in [
        ("a clock ahead", "Sun, 06 Nov 2044 08:49:37 GMT"),
        ("a clock behind", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ] {
        let server = issuer(move |request| {
            let mut response = with_member(request, "x", json!(1))?;
            response
                .headers_mut()
                .insert(header::DATE, header::HeaderValue::from_static(date));
            Some(response)
        })
        .await;
        Setup::new(&server.url(""), &upstream.setting())
            .assert_cause(name, "clock.difference", &["NTP"])
            .await;
    }
}

/// J9: a scope that the issuer does not know is a warning.
#[tokio::test]
async fn unknown_scopes() {
    let upstream = Upstream::start().await;
    let sound = issuer(|_| None).await;
    let setup = Setup::new(&sound.url(""), &upstream.setting())
        .resource("scopes_supported = [\"mcp:tools\", \"mcp:missing\"]\n");
    let (finished, report) = setup.json().await;
    assert_eq!(finished.code, Some(0), "{report:#}");
    assert_eq!(report["online"]["summary"]["warnings"], 1, "{report:#}");
    assert_eq!(setup.run(&["--deny-warnings"]).await.code, Some(2));
}
