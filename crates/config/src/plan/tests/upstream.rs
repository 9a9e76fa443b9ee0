//! Settings of upstreams, and how many connections they use.

use super::{GOOD, check, error, with_lines};
use crate::plan::*;

#[test]
fn invalid_upstreams_are_rejected() {
    let upstream = "http://127.0.0.1:8000/mcp";
    assert!(error(upstream, "ftp://127.0.0.1:8000/mcp").contains("upstream"));
    assert!(error(upstream, "127.0.0.1:8000").contains("upstream"));
    let unix = |socket: &str| {
        GOOD.replace(
            &format!("http = \"{upstream}\""),
            &format!("unix = \"{socket}\""),
        )
    };
    for socket in ["/run/mcp.sock", "/run/mcp.sock:/mcp"] {
        assert!(check(&unix(socket)).is_ok(), "{socket}");
    }
    assert!(check(&unix("run/mcp.sock")).is_err());
    let long = unix(&format!("/run/{}.sock:/mcp", "x".repeat(98)));
    let message = check(&long).err().unwrap().to_string();
    assert!(
        message.contains("is too long for a Unix socket; choose"),
        "{message}"
    );
}

/// L8, L9: forwarded headers, the head timeout and the connection limit are configurable.
#[test]
fn upstream_settings() {
    let settings = |more: &str| {
        let text = GOOD.replace("required_scopes", &format!("{more}\nrequired_scopes"));
        let plan = check(&text).unwrap();
        let UpstreamPlan::Http(settings) = &plan.resources[0].upstream else {
            panic!("an HTTP upstream")
        };
        (**settings).clone()
    };
    let defaults = settings("");
    assert_eq!(defaults.head_timeout.as_secs(), 300);
    assert_eq!(defaults.connection_limit.max(), 10_000);
    assert!(defaults.forward_headers.is_empty());

    let chosen = settings(
        "upstream_head_timeout = \"24h\"\nforward_headers = [\"X-User\", \"CF-Connecting-IP\"]",
    );
    assert_eq!(chosen.head_timeout.as_secs(), 24 * 60 * 60);
    assert_eq!(chosen.forward_headers, ["x-user", "cf-connecting-ip"]);

    for (line, key) in [
        ("upstream_head_timeout = \"999ms\"", "upstream_head_timeout"),
        ("upstream_head_timeout = \"25h\"", "upstream_head_timeout"),
        (
            "forward_headers = [\"Authorization\"]",
            "forward_headers lists `authorization`",
        ),
        ("forward_headers = [\"Cookie\"]", "forward_cookies"),
        ("forward_headers = [\"Mcp-Session-Id\"]", "forward_headers"),
        (
            "forward_headers = [\"X-Portcullis-Subject\"]",
            "the identity of the caller",
        ),
        ("forward_headers = [\"a b\"]", "forward_headers"),
        (
            "forward_headers = [\"X-User\"]\nidentity_headers = { X-User = \"sub\" }",
            "the identity of the caller",
        ),
    ] {
        let error = error("required_scopes", &format!("{line}\nrequired_scopes"));
        assert!(error.contains(key), "{line}: {error}");
    }
}

/// J9: every invalid value has its error, also with an invalid address.
#[test]
fn all_errors_of_an_upstream_are_found() {
    let lines = "upstream_head_timeout = \"1ms\"\nforward_headers = [\"a b\", \"Cookie\", \"X-User\", \"Authorization\"]\n\
                 identity_headers = { \"c d\" = \"sub\", Host = \"sub\" }\nrequired_scopes";
    let headers = "upstream_head_timeout = \"1s\"\nforward_headers = [\"Cookie\", \"X-User\", \"Authorization\"]\n\
                   identity_headers = { Host = \"sub\", Via = \"sub\", X-Mine = \"sub\" }\nrequired_scopes";
    let invalid = [
        ("upstream_head_timeout", ""),
        ("forward_headers", "\"a b\""),
        ("identity_headers", "\"c d\""),
    ];
    let forbidden = [
        ("forward_headers", "`cookie`"),
        ("forward_headers", "`authorization`"),
        ("identity_headers", "`host`"),
        ("identity_headers", "`via`"),
    ];
    for address in ["ftp://127.0.0.1", "http://a@127.0.0.1"] {
        for (lines, expected) in [(lines, &invalid[..]), (headers, &forbidden[..])] {
            let text = GOOD
                .replace("required_scopes", lines)
                .replace("http://127.0.0.1:8000/mcp", address);
            let message = format!("{:#}", check(&text).err().expect("an error"));
            for (key, part) in expected.iter().chain(&[("upstream", "")]) {
                let is_found = |line: &str| {
                    line.starts_with(&format!("resource[0].{key}")) && line.contains(part)
                };
                assert!(message.lines().any(is_found), "{key} {part}: {message}");
            }
        }
    }
}

/// L9: the connection limit of an upstream is that of clients by default.
#[test]
fn upstream_connections() {
    for (limits, expected) in [
        ("max_connections = 7", 7),
        ("upstream_connections = 9", 9),
        ("max_connections = 7\nupstream_connections = 9", 9),
    ] {
        let plan = check(&with_lines(&format!("[limits]\n{limits}"))).unwrap();
        let UpstreamPlan::Http(settings) = &plan.resources[0].upstream else {
            panic!("an HTTP upstream")
        };
        assert_eq!(settings.connection_limit.max(), expected, "{limits}");
    }
}
