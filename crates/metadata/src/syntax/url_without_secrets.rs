//! [`url_without_secrets`]: URLs for logs, errors and reports.

use url::Url;

/// Returns the URL without user information, query and fragment, which can contain credentials (RFC
/// 9700 section 4.2, RFC 3986 section 7.5).
///
/// Does not escape or shorten the URL, and does not remove secrets from its path.
#[must_use]
pub fn url_without_secrets(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs without a host, which have no user information.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2: only scheme, host, port and path remain.
    #[test]
    fn user_query_and_fragment_are_removed() {
        for (url, shown) in [
            (
                "https://u:p@mcp.example.com:8443/mcp?token=x#y",
                "https://mcp.example.com:8443/mcp",
            ),
            ("https://u@mcp.example.com/", "https://mcp.example.com/"),
            ("data:text/plain?token=x#y", "data:text/plain"),
            ("file:///a?token=x", "file:///a"),
        ] {
            assert_eq!(
                url_without_secrets(&Url::parse(url).unwrap()).as_str(),
                shown,
                "{url}"
            );
        }
    }
}
