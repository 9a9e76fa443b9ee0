//! Feeds input to URIs and well-known URLs.

use portcullis_metadata::{
    Issuer, ResourceUri, authorization_server_urls, client::ClientIdUrl, protected_resource_path,
    protected_resource_urls,
};
use url::Url;

const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// Parses an identifier as each type. Identifiers keep their text, and well-known URLs keep their
/// origin.
pub fn well_known(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    assert!(protected_resource_path(text).starts_with(PROTECTED_RESOURCE));
    if let Ok(issuer) = Issuer::parse(text) {
        assert_eq!(issuer.as_str(), text);
        let urls = authorization_server_urls(&issuer);
        assert!(matches!(urls.len(), 2 | 3));
        for url in urls {
            assert_same_origin(&url, issuer.url());
            assert!(url.path().contains("/.well-known/"));
            assert!(url.query().is_none());
        }
    }
    if let Ok(resource) = ResourceUri::parse(text) {
        assert_eq!(resource.as_str(), text);
        assert!(resource.matches_audience(text));
        assert!(resource.matches_audience(&text.to_ascii_uppercase()));
        let urls = protected_resource_urls(resource.url());
        assert!(matches!(urls.len(), 1 | 2));
        for url in urls {
            assert_same_origin(&url, resource.url());
            assert!(url.path().starts_with(PROTECTED_RESOURCE));
        }
    }
    if let Ok(client) = ClientIdUrl::parse_or_loopback_http(text) {
        assert_eq!(client.as_str(), text);
    }
}

fn assert_same_origin(left: &Url, right: &Url) {
    assert_eq!(left.origin(), right.origin());
    assert!(left.username().is_empty());
    assert!(left.password().is_none());
    assert!(left.fragment().is_none());
}
