//! URLs as people type them: without a scheme.

use portcullis_config::plan::has_public_host;
use portcullis_metadata::syntax::is_loopback;
use url::Url;

/// Adds the scheme that a URL of an authorization server or of clients needs: `https`, except on
/// loopback. Other texts are returned unchanged.
pub(super) fn for_clients(text: &str) -> String {
    with_scheme(text, is_loopback)
}

/// As [`for_clients`], with `http` also in a private network.
pub(super) fn for_upstream(text: &str) -> String {
    with_scheme(text, |url| is_loopback(url) || !has_public_host(url))
}

fn with_scheme(text: &str, is_plain: impl Fn(&Url) -> bool) -> String {
    let is_host = text == "localhost" || text.contains(['.', ':']);
    if text.contains("://") || text.starts_with('/') || !is_host {
        return text.to_owned();
    }
    match Url::parse(&format!("http://{text}")) {
        Ok(url) if is_plain(&url) => format!("http://{text}"),
        Ok(_) => format!("https://{text}"),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: what looks like a host gets the scheme that is valid there.
    #[test]
    fn a_missing_scheme_is_added() {
        for (text, url) in [
            ("127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("localhost", "http://localhost"),
            ("localhost:9000/realms/a", "http://localhost:9000/realms/a"),
            ("[::1]:9000", "http://[::1]:9000"),
            (
                "auth.example.com/realms/a",
                "https://auth.example.com/realms/a",
            ),
            ("10.0.0.5:9000", "https://10.0.0.5:9000"),
            ("https://a.example", "https://a.example"),
            ("http://a.example", "http://a.example"),
            ("x", "x"),
            ("", ""),
            ("/mcp", "/mcp"),
            ("a b.example", "a b.example"),
        ] {
            assert_eq!(for_clients(text), url, "{text}");
        }
        for (text, url) in [
            ("127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
            ("10.0.0.5:8000/mcp", "http://10.0.0.5:8000/mcp"),
            ("mcp:8000/mcp", "http://mcp:8000/mcp"),
            (
                "host.docker.internal:8000/mcp",
                "http://host.docker.internal:8000/mcp",
            ),
            (
                "mcp.tools.svc.cluster.local/mcp",
                "http://mcp.tools.svc.cluster.local/mcp",
            ),
            ("tools.example.com/mcp", "https://tools.example.com/mcp"),
            ("203.0.113.9/mcp", "https://203.0.113.9/mcp"),
        ] {
            assert_eq!(for_upstream(text), url, "{text}");
        }
    }
}
