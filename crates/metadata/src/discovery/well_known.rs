//! The well-known URLs of metadata documents.

use url::Url;

use crate::{identifier::Issuer, syntax::url_without_secrets};

const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID_CONFIGURATION: &str = "/.well-known/openid-configuration";

/// Returns the path of the metadata document of the resource at `endpoint_path` (RFC 9728 section
/// 3.1).
///
/// The well-known path is inserted before the endpoint's path: `/mcp` gives
/// `/.well-known/oauth-protected-resource/mcp`. The root, `/` or empty, gives the root form. The
/// trailing slash of a longer path is kept because it is part of the resource's identifier.
pub fn protected_resource_path(endpoint_path: &str) -> String {
    match endpoint_path {
        "" | "/" => PROTECTED_RESOURCE.to_owned(),
        path => format!("{PROTECTED_RESOURCE}{path}"),
    }
}

/// Returns the URLs where a client looks for a resource's metadata if the challenge has no
/// `resource_metadata`, in order: the path form with the resource's query, if any (RFC 9728 section
/// 3.1), then the root form.
///
/// Returns one URL if both forms are the same. Drops the fragment and the user information.
pub fn protected_resource_urls(resource: &Url) -> Vec<Url> {
    let path_form = replace_path(
        resource,
        &protected_resource_path(resource.path()),
        resource.query(),
    );
    let root_form = replace_path(resource, PROTECTED_RESOURCE, None);
    if path_form == root_form {
        vec![root_form]
    } else {
        vec![path_form, root_form]
    }
}

/// Returns the URLs where an authorization server's metadata may be, in the order to try.
///
/// An issuer with a path has three: the RFC 8414 URL, the OpenID URL with the path inserted after
/// the well-known part, and the OpenID URL with the path before it. An issuer without a path has
/// two. Slashes at the end of the issuer are ignored (RFC 8414 section 3.1, OpenID Connect
/// Discovery 1.0 section 4.1).
pub fn authorization_server_urls(issuer: &Issuer) -> Vec<Url> {
    let path = issuer.url().path().trim_end_matches('/');
    let mut paths = vec![
        format!("{AUTHORIZATION_SERVER}{path}"),
        format!("{OPENID_CONFIGURATION}{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID_CONFIGURATION}"));
    }
    paths
        .iter()
        .map(|path| replace_path(issuer.url(), path, None))
        .collect()
}

/// Replaces a URL's path and query. Both come from a parsed URL, so they are already
/// percent-encoded.
fn replace_path(base: &Url, path: &str, query: Option<&str>) -> Url {
    let mut url = url_without_secrets(base);
    url.set_path(path);
    url.set_query(query);
    url
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::arbitrary;

    fn resource_urls(resource: &str) -> Vec<String> {
        protected_resource_urls(&Url::parse(resource).unwrap())
            .into_iter()
            .map(String::from)
            .collect()
    }

    fn server_urls(issuer: &str) -> Vec<String> {
        authorization_server_urls(&Issuer::parse(issuer).unwrap())
            .into_iter()
            .map(String::from)
            .collect()
    }

    /// A3: the root has only the root form.
    #[test]
    fn the_well_known_path_is_inserted() {
        let root = "/.well-known/oauth-protected-resource";
        assert_eq!(protected_resource_path("/"), root);
        assert_eq!(protected_resource_path(""), root);
        assert_eq!(protected_resource_path("/mcp"), format!("{root}/mcp"));
        assert_eq!(protected_resource_path("/a/b"), format!("{root}/a/b"));
    }

    /// G1: the path form comes before the root form.
    #[test]
    fn resources_have_one_or_two_forms() {
        let root = "https://h.example:8443/.well-known/oauth-protected-resource";
        assert_eq!(
            resource_urls("https://h.example:8443/a/b"),
            [format!("{root}/a/b"), root.to_owned()]
        );
        assert_eq!(
            resource_urls("https://h.example:8443/a%2Fb/"),
            [format!("{root}/a%2Fb/"), root.to_owned()]
        );
        assert_eq!(resource_urls("https://h.example:8443"), [root]);
        assert_eq!(resource_urls("https://h.example:8443/"), [root]);
        assert_eq!(resource_urls("https://u:p@h.example:8443/#x"), [root]);
    }

    /// G1: the query is kept (RFC 9728 section 3.1).
    #[test]
    fn the_query_is_kept() {
        let root = "https://h.example/.well-known/oauth-protected-resource";
        assert_eq!(
            resource_urls("https://h.example/a?k=v&l"),
            [format!("{root}/a?k=v&l"), root.to_owned()]
        );
        assert_eq!(
            resource_urls("https://h.example?k=v"),
            [format!("{root}?k=v"), root.to_owned()]
        );
        assert_eq!(
            resource_urls("https://h.example/?k=v"),
            [format!("{root}?k=v"), root.to_owned()]
        );
    }

    /// G3: an issuer with a path has three URLs in order. Slashes at its end are ignored.
    #[test]
    fn an_issuer_with_a_path_has_three_urls() {
        let expected = [
            "https://as.example/.well-known/oauth-authorization-server/realms/a",
            "https://as.example/.well-known/openid-configuration/realms/a",
            "https://as.example/realms/a/.well-known/openid-configuration",
        ];
        assert_eq!(server_urls("https://as.example/realms/a"), expected);
        assert_eq!(server_urls("https://as.example/realms/a/"), expected);
        assert_eq!(server_urls("https://as.example/realms/a//"), expected);
    }

    /// G3: an issuer without a path has two URLs in order.
    #[test]
    fn an_issuer_without_a_path_has_two_urls() {
        let expected = [
            "http://127.0.0.1:9000/.well-known/oauth-authorization-server",
            "http://127.0.0.1:9000/.well-known/openid-configuration",
        ];
        assert_eq!(server_urls("http://127.0.0.1:9000"), expected);
        assert_eq!(server_urls("http://127.0.0.1:9000/"), expected);
    }

    #[test]
    fn percent_encoded_paths_are_not_encoded_twice() {
        assert_eq!(
            server_urls("https://as.example/a%20b/%2e%2E")[0],
            "https://as.example/.well-known/oauth-authorization-server"
        );
        assert_eq!(
            server_urls("https://as.example/a%20b")[2],
            "https://as.example/a%20b/.well-known/openid-configuration"
        );
    }

    proptest! {
        /// G1: the metadata URL has the resource's origin.
        #[test]
        fn resource_urls_keep_the_origin(resource in arbitrary::endpoint()) {
            for url in protected_resource_urls(&resource) {
                prop_assert_eq!(url.origin(), resource.origin());
                prop_assert!(url.path().starts_with(PROTECTED_RESOURCE));
            }
        }

        /// G3: the metadata URL has the issuer's origin.
        #[test]
        fn issuer_urls_keep_the_origin(issuer in arbitrary::issuer()) {
            for url in authorization_server_urls(&issuer) {
                prop_assert_eq!(url.origin(), issuer.url().origin());
                prop_assert!(url.path().contains("/.well-known/"));
            }
        }
    }
}
