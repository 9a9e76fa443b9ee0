//! Settings of upstreams, and how many connections they use.

use super::{GOOD, check, error, with_lines};
use crate::plan::*;

#[test]
fn invalid_upstreams_are_rejected() {
    let upstream = "http://127.0.0.1:8000/mcp";
    assert!(error(upstream, "ftp://127.0.0.1:8000/mcp").contains("upstream"));
    assert!(error(upstream, "127.0.0.1:8000").contains("upstream"));
    let unix = |socket: &str| GOOD.replace(&format!("http = \"{upstream}\""), &format!("unix = \"{socket}\""));
    for socket in ["/run/mcp.sock", "/run/mcp.sock:/mcp"] {
        assert!(check(&unix(socket)).is_ok(), "{socket}");
    }
    assert!(check(&unix("run/mcp.sock")).is_err());
}

/// L8, L9: forwarded headers, the head timeout and the connection limit are configurable.
#[test]
fn upstream_settings() {
    let settings = |more: &str| {
        let text = GOOD.replace("required_scopes", &format!("{more}\nrequired_scopes"));
        let plan = check(&text).unwrap();
        let UpstreamPlan::Http(settings) = &plan.resources[0].upstream else { panic!("an HTTP upstream") };
        (**settings).clone()
    };
    let defaults = settings("");
    assert_eq!(defaults.head_timeout.as_secs(), 300);
    assert_eq!(defaults.connection_limit.max(), 10_000);
    assert!(defaults.forward_headers.is_empty());

    let chosen = settings("upstream_head_timeout = \"24h\"\nforward_headers = [\"X-User\", \"CF-Connecting-IP\"]");
    assert_eq!(chosen.head_timeout.as_secs(), 24 * 60 * 60);
    assert_eq!(chosen.forward_headers, ["x-user", "cf-connecting-ip"]);

    for (line, key) in [
        ("upstream_head_timeout = \"999ms\"", "upstream_head_timeout"),
        ("upstream_head_timeout = \"25h\"", "upstream_head_timeout"),
        ("forward_headers = [\"Authorization\"]", "forward_headers lists `authorization`"),
        ("forward_headers = [\"Cookie\"]", "forward_cookies"),
        ("forward_headers = [\"Mcp-Session-Id\"]", "forward_headers"),
        ("forward_headers = [\"X-Portcullis-Subject\"]", "identity_headers"),
        ("forward_headers = [\"a b\"]", "forward_headers"),
        ("forward_headers = [\"X-User\"]\nidentity_headers = { X-User = \"sub\" }", "identity_headers"),
    ] {
        let error = error("required_scopes", &format!("{line}\nrequired_scopes"));
        assert!(error.contains(key), "{line}: {error}");
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
        let UpstreamPlan::Http(settings) = &plan.resources[0].upstream else { panic!("an HTTP upstream") };
        assert_eq!(settings.connection_limit.max(), expected, "{limits}");
    }
}
