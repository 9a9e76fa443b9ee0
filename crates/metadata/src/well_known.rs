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
