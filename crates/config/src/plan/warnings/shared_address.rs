//! All clients with the address of one proxy.

use portcullis_metadata::syntax::is_loopback;
use url::Url;

use crate::Config;

/// Returns a note if a proxy on this machine must be in front and is not named, so that limits and
/// records have its address for all clients.
///
/// It is not a warning: the configuration protects its resources, and a proxy that reports no
/// addresses must not be trusted.
pub(in crate::plan) fn note(config: &Config, base_url: &Url) -> Option<String> {
    let needs_proxy = base_url.scheme() == "https"
        && config.tls.is_none()
        && config.listen.ip().is_loopback()
        // A test, which no proxy finds.
        && config.listen.port() != 0
        && !is_loopback(base_url);
    (needs_proxy && config.trusted_proxies.is_empty()).then(|| {
        format!(
            "clients' addresses: base_url = {:?} and listen = \"{}\" need a proxy on this machine, and trusted_proxies is not set: \
             limits, the log and the audit trail have one address for all clients. If the proxy reports their addresses \
             ({}), write trusted_proxies = [\"{}\"]",
            config.base_url,
            config.listen,
            config.trusted_proxy_header.as_str(),
            config.listen.ip()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(base_url: &str, listen: &str, more: &str) -> Option<String> {
        let text = format!(
            "listen = \"{listen}\"\nbase_url = \"{base_url}\"\n{more}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\""
        );
        let config = crate::from_text(&text).unwrap();
        note(&config, &Url::parse(base_url).unwrap())
    }

    /// J5, J9: a proxy that must exist and is not named is noted, with the line to write.
    #[test]
    fn a_proxy_without_a_name_is_noted() {
        const PUBLIC: &str = "https://mcp.example.com";
        for (listen, line) in [
            ("127.0.0.1:3000", "trusted_proxies = [\"127.0.0.1\"]"),
            ("[::1]:3000", "trusted_proxies = [\"::1\"]"),
        ] {
            let text = noted(PUBLIC, listen, "").unwrap();
            assert!(text.contains(line) && text.contains(PUBLIC), "{text}");
        }
        let header = "trusted_proxy_header = \"Forwarded\"";
        let text = noted(PUBLIC, "127.0.0.1:3000", header).unwrap();
        assert!(text.contains("addresses (Forwarded), write"), "{text}");
        for (base_url, listen, more) in [
            (
                PUBLIC,
                "127.0.0.1:3000",
                "trusted_proxies = [\"127.0.0.1\"]",
            ),
            (
                PUBLIC,
                "127.0.0.1:3000",
                "tls = { certificates = \"c\", key = \"k\" }",
            ),
            (PUBLIC, "10.0.0.5:3000", ""),
            (PUBLIC, "127.0.0.1:0", ""),
            ("http://127.0.0.1:3000", "127.0.0.1:3000", ""),
            ("https://localhost:3443", "127.0.0.1:3000", ""),
        ] {
            assert_eq!(
                noted(base_url, listen, more),
                None,
                "{base_url} {listen} {more}"
            );
        }
    }
}
