//! URLs of metadata and endpoints in place of an issuer.

use url::Url;

use super::products;
use crate::shown_url;

const WELL_KNOWN: [&str; 2] = [
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
];
const KEYS: [&str; 2] = ["/.well-known/jwks.json", "/.well-known/jwks"];
/// The ends of URLs of endpoints. `/oauth/token` and `/oauth2/token` are not among them: Cloud
/// Foundry and WSO2 have issuers with these ends.
const ENDPOINTS: [&str; 5] = [
    "/connect/token",
    "/connect/authorize",
    "/oauth2/auth",
    "/oauth2/authorize",
    "/oauth/authorize",
];
/// Where Keycloak's endpoints begin.
const KEYCLOAK_ENDPOINTS: &str = "/protocol/openid-connect";
/// The endpoints of Okta, below `/oauth2/<server>/v1`, also at a custom domain.
const OKTA_ENDPOINTS: [&str; 6] = [
    "authorize",
    "introspect",
    "keys",
    "revoke",
    "token",
    "userinfo",
];

/// Returns what a URL is in place of an issuer, and the fix. The message follows the URL.
pub(in crate::plan) fn doubt(issuer: &str) -> Option<String> {
    let bare = issuer.trim_end_matches('/');
    let url = Url::parse(issuer).ok();
    let before = |ends: &[&str]| ends.iter().find_map(|end| bare.strip_suffix(end));
    let (what, meant) = if let Some(meant) = issuer_of_metadata(bare) {
        ("the URL of the issuer's metadata".to_owned(), meant)
    } else if let Some(meant) = before(&KEYS) {
        ("the URL of the issuer's keys".to_owned(), meant.to_owned())
    } else if let Some(found) = url.as_ref().and_then(products::misplaced) {
        found
    } else if let Some(meant) = endpoint_of(bare).or_else(|| before(&ENDPOINTS)) {
        (
            "the URL of an endpoint of the issuer".to_owned(),
            meant.to_owned(),
        )
    } else {
        return products::other_form(issuer, &url?);
    };
    Some(format!(
        "is {what}; write the `issuer` that is in the metadata, probably {:?}",
        shown_url(&meant)
    ))
}

/// Returns what to write instead of a URL of metadata or of another endpoint at `key`, whose value
/// is a member of the metadata with the same name. The message follows the URL.
pub(in crate::plan) fn metadata_doubt(url: &str, key: &str) -> Option<String> {
    let bare = url.trim_end_matches('/');
    let what = match issuer_of_metadata(bare) {
        Some(_) => "metadata",
        None => other_endpoint(bare, key)?,
    };
    Some(format!(
        "is the URL of the issuer's {what}; write the `{key}` that is in the metadata, or remove this key, because it is \
         taken from there"
    ))
}

/// Returns which endpoint a URL is in place of the one for introspection.
fn other_endpoint(url: &str, key: &str) -> Option<&'static str> {
    let url = Url::parse(url).ok()?;
    let path = url.path().trim_end_matches('/');
    if key != "introspection_endpoint" || path.contains("introspect") {
        return None;
    }
    let endpoints = [
        ("/token", "token endpoint"),
        ("/userinfo", "userinfo endpoint"),
    ];
    endpoints
        .into_iter()
        .find_map(|(end, name)| path.ends_with(end).then_some(name))
}

/// Returns the issuer of a URL of metadata (RFC 8414, section 3.1; OpenID Connect Discovery 1.0,
/// section 4).
fn issuer_of_metadata(url: &str) -> Option<String> {
    WELL_KNOWN.iter().find_map(|infix| {
        if let Some(issuer) = url.strip_suffix(infix) {
            return Some(issuer.to_owned());
        }
        let (origin, path) = url.split_once(&format!("{infix}/"))?;
        Some(format!("{origin}/{path}"))
    })
}

/// Returns the issuer of an endpoint of Keycloak or Okta.
fn endpoint_of(url: &str) -> Option<&str> {
    if let Some((meant, _)) = url.split_once(KEYCLOAK_ENDPOINTS) {
        return Some(meant);
    }
    let (server, endpoint) = url.rsplit_once("/v1/")?;
    (server.contains("/oauth2/") && OKTA_ENDPOINTS.contains(&endpoint)).then_some(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: URLs that are no issuers have a warning with the issuer that is probably meant.
    #[test]
    fn other_urls_are_named() {
        for (url, what, meant) in [
            (
                "https://a.example/r/.well-known/openid-configuration",
                "metadata",
                "https://a.example/r",
            ),
            (
                "https://a.example/.well-known/oauth-authorization-server/r",
                "metadata",
                "https://a.example/r",
            ),
            (
                "https://a.example/.well-known/jwks.json",
                "keys",
                "https://a.example",
            ),
            (
                "https://a.example/realms/prod/protocol/openid-connect/token",
                "endpoint",
                "https://a.example/realms/prod",
            ),
            (
                "https://login.example.com/oauth2/aus1/v1/authorize",
                "endpoint",
                "https://login.example.com/oauth2/aus1",
            ),
            (
                "https://a.example/connect/token/",
                "endpoint",
                "https://a.example",
            ),
        ] {
            let doubt = doubt(url).unwrap_or_else(|| panic!("{url}"));
            assert!(doubt.contains(what), "{url}: {doubt}");
            assert!(
                doubt.ends_with(&format!("probably {meant:?}")),
                "{url}: {doubt}"
            );
        }
    }

    /// J9: metadata in place of the URL of keys or of an endpoint is named.
    #[test]
    fn metadata_is_no_endpoint() {
        for url in [
            "https://a.example/r/.well-known/openid-configuration",
            "https://a.example/.well-known/openid-configuration/",
            "https://a.example/.well-known/oauth-authorization-server/r",
        ] {
            let doubt = metadata_doubt(url, "jwks_uri").unwrap_or_else(|| panic!("{url}"));
            assert!(doubt.contains("write the `jwks_uri` that is in"), "{doubt}");
        }
        for url in [
            "https://a.example/.well-known/jwks.json",
            "https://a.example/r/protocol/openid-connect/certs",
            "not a URL",
        ] {
            assert_eq!(metadata_doubt(url, "jwks_uri"), None, "{url}");
        }
    }

    /// J9: another endpoint in place of the one for introspection is named.
    #[test]
    fn other_endpoints_do_not_introspect() {
        let doubt = |url| metadata_doubt(url, "introspection_endpoint").unwrap_or_default();
        for (url, what) in [
            (
                "https://a.example/r/protocol/openid-connect/token",
                "is the URL of the issuer's token endpoint; write the `introspection_endpoint`",
            ),
            (
                "https://a.example/oauth2/token/?x=y",
                "issuer's token endpoint",
            ),
            ("https://a.example/userinfo", "issuer's userinfo endpoint"),
        ] {
            assert!(doubt(url).contains(what), "{url}: {}", doubt(url));
        }
        for url in [
            "https://a.example/r/protocol/openid-connect/token/introspect",
            "https://a.example/introspect/token",
            "https://a.example/oauth2/v1/introspect",
            "https://a.example/token_info",
            "https://token",
            "introspect",
        ] {
            assert_eq!(doubt(url), "", "{url}");
        }
        let keys = "https://a.example/token";
        assert_eq!(metadata_doubt(keys, "jwks_uri"), None);
    }

    /// Issuers that products have are not named, also if they look like endpoints.
    #[test]
    fn issuers_are_not_named() {
        for issuer in [
            "https://auth.example.com/realms/prod",
            "https://uaa.example.com/oauth/token",
            "https://wso2.example.com/oauth2/token",
            "https://login.example.com/oauth2/default",
            "https://auth.example.com/application/o/mcp/",
            "https://auth.example.com/v1/token",
            "not a URL",
        ] {
            assert_eq!(doubt(issuer), None, "{issuer}");
        }
    }
}
