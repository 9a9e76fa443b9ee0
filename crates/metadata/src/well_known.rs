use url::Url;

use crate::Issuer;

const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID_CONFIGURATION: &str = "/.well-known/openid-configuration";

/// The path at which the metadata of the resource at `endpoint_path` is served (RFC 9728 section 3.1).
///
/// The well-known part goes between the host and the path: `/mcp` gives
/// `/.well-known/oauth-protected-resource/mcp`. The root, written `/` or empty, gives the root form. A
/// trailing slash of a longer path stays, as it is part of the resource's identifier.
pub fn protected_resource_path(endpoint_path: &str) -> String {
    match endpoint_path {
        "" | "/" => PROTECTED_RESOURCE.to_owned(),
        path => format!("{PROTECTED_RESOURCE}{path}"),
    }
}

/// Where a client looks for the metadata of a resource that sent no `resource_metadata`: the path form,
/// with the resource's query where it has one (RFC 9728 section 3.1), then the root form. One URL when
/// both are the same. A fragment and user information are left out.
pub fn protected_resource_urls(resource: &Url) -> Vec<Url> {
    let specific = replace_path(resource, &protected_resource_path(resource.path()), resource.query());
    let root = replace_path(resource, PROTECTED_RESOURCE, None);
    if specific == root { vec![root] } else { vec![specific, root] }
}

/// Where the metadata of an authorization server may be, in the order to try: for an issuer with a path
/// the RFC 8414 form, the OpenID form with the path inserted, and the OpenID form with the path in front;
/// for an issuer without one, the two root forms. A trailing slash of the issuer does not count
/// (RFC 8414 section 3.1, OpenID Connect Discovery 1.0 section 4.1).
pub fn authorization_server_urls(issuer: &Issuer) -> Vec<Url> {
    let path = issuer.url().path().trim_end_matches('/');
    let mut paths = vec![format!("{AUTHORIZATION_SERVER}{path}"), format!("{OPENID_CONFIGURATION}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID_CONFIGURATION}"));
    }
    paths.iter().map(|path| replace_path(issuer.url(), path, None)).collect()
}

/// `path` and `query` come out of a parsed URL, so that they are encoded already and stay as they are.
fn replace_path(base: &Url, path: &str, query: Option<&str>) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(query);
    url.set_fragment(None);
    // Both fail only for a URL without a host, which has no user information either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::arbitrary;

    fn resource_urls(resource: &str) -> Vec<String> {
        protected_resource_urls(&Url::parse(resource).unwrap()).into_iter().map(String::from).collect()
    }

    fn server_urls(issuer: &str) -> Vec<String> {
        authorization_server_urls(&Issuer::parse(issuer).unwrap()).into_iter().map(String::from).collect()
    }

    /// A3: only the root form exists for the root.
    #[test]
    fn the_path_is_inserted() {
        let root = "/.well-known/oauth-protected-resource";
        assert_eq!(protected_resource_path("/"), root);
        assert_eq!(protected_resource_path(""), root);
        assert_eq!(protected_resource_path("/mcp"), format!("{root}/mcp"));
        assert_eq!(protected_resource_path("/a/b"), format!("{root}/a/b"));
    }

    /// G1: the path form, then the root form.
    #[test]
    fn resources_have_one_or_two_forms() {
        let root = "https://h.example:8443/.well-known/oauth-protected-resource";
        assert_eq!(resource_urls("https://h.example:8443/a/b"), [format!("{root}/a/b"), root.to_owned()]);
        assert_eq!(resource_urls("https://h.example:8443/a%2Fb/"), [format!("{root}/a%2Fb/"), root.to_owned()]);
        assert_eq!(resource_urls("https://h.example:8443"), [root]);
        assert_eq!(resource_urls("https://h.example:8443/"), [root]);
        assert_eq!(resource_urls("https://u:p@h.example:8443/#x"), [root]);
    }

    /// G1: a query stays behind the path (RFC 9728 section 3.1).
    #[test]
    fn the_query_stays() {
        let root = "https://h.example/.well-known/oauth-protected-resource";
        assert_eq!(resource_urls("https://h.example/a?k=v&l"), [format!("{root}/a?k=v&l"), root.to_owned()]);
        assert_eq!(resource_urls("https://h.example?k=v"), [format!("{root}?k=v"), root.to_owned()]);
        assert_eq!(resource_urls("https://h.example/?k=v"), [format!("{root}?k=v"), root.to_owned()]);
    }

    /// G3: three forms in order for an issuer with a path, its trailing slash not counting.
    #[test]
    fn an_issuer_with_a_path_has_three_forms() {
        let expected = [
            "https://as.example/.well-known/oauth-authorization-server/realms/a",
            "https://as.example/.well-known/openid-configuration/realms/a",
            "https://as.example/realms/a/.well-known/openid-configuration",
        ];
        assert_eq!(server_urls("https://as.example/realms/a"), expected);
        assert_eq!(server_urls("https://as.example/realms/a/"), expected);
    }

    /// G3: two forms in order for an issuer without a path.
    #[test]
    fn an_issuer_without_a_path_has_two_forms() {
        let expected = [
            "http://127.0.0.1:9000/.well-known/oauth-authorization-server",
            "http://127.0.0.1:9000/.well-known/openid-configuration",
        ];
        assert_eq!(server_urls("http://127.0.0.1:9000"), expected);
        assert_eq!(server_urls("http://127.0.0.1:9000/"), expected);
    }

    #[test]
    fn encoded_paths_are_not_encoded_again() {
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
        /// G1: no resource leads to another origin.
        #[test]
        fn resources_keep_their_origin(resource in arbitrary::endpoint()) {
            for url in protected_resource_urls(&resource) {
                prop_assert_eq!(url.origin(), resource.origin());
                prop_assert!(url.path().starts_with(PROTECTED_RESOURCE));
            }
        }

        /// G3: no issuer leads to another origin.
        #[test]
        fn issuers_keep_their_origin(issuer in arbitrary::issuer()) {
            for url in authorization_server_urls(&issuer) {
                prop_assert_eq!(url.origin(), issuer.url().origin());
                prop_assert!(url.path().contains("/.well-known/"));
            }
        }
    }
}
