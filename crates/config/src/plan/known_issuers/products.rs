//! Endpoints and pages of products in place of an issuer.
//!
//! Sources: <https://docs.goauthentik.io/add-secure-apps/providers/oauth2/> for Authentik,
//! <https://zitadel.com/docs/apis/openidoauth/endpoints> for Zitadel,
//! <https://www.ory.com/docs/oauth2-oidc/overview/oauth2-concepts> for Ory,
//! <https://docs.gitlab.com/integration/openid_connect_provider/> for GitLab,
//! <https://www.keycloak.org/docs-api/latest/rest-api/index.html> for Keycloak,
//! <https://github.com/AzureAD/microsoft-identity-web/wiki/Azure-AD-B2C-issuer-claim-support> and
//! <https://learn.microsoft.com/en-us/entra/external-id/customers/> for Microsoft.

use portcullis_metadata::syntax::is_uuid;
use url::Url;

use super::hosts::{host, is_below};
use crate::shown_url;

/// URLs of one product that are not its issuer.
struct Product {
    /// The domains of its hosts. Empty for a product that operators run themselves.
    domains: &'static [&'static str],
    /// The complete paths of endpoints, without slashes at their ends.
    endpoints: &'static [&'static str],
    /// The paths with which those of pages begin.
    pages: &'static [&'static str],
    name: &'static str,
    /// What the issuer is like. `{origin}` is that of the URL.
    issuer: &'static str,
}

const PRODUCTS: &[Product] = &[
    Product {
        domains: &[],
        endpoints: &[
            "/application/o/authorize",
            "/application/o/device",
            "/application/o/introspect",
            "/application/o/revoke",
            "/application/o/token",
            "/application/o/userinfo",
        ],
        pages: &["/if/admin", "/if/user"],
        name: "Authentik",
        issuer: "{origin}/application/o/<slug of the application>/",
    },
    Product {
        domains: &[],
        endpoints: &[
            "/oauth/v2/authorize",
            "/oauth/v2/introspect",
            "/oauth/v2/keys",
            "/oauth/v2/revoke",
            "/oauth/v2/token",
            "/oidc/v1/userinfo",
        ],
        pages: &["/ui/console", "/ui/login", "/ui/v2/login"],
        name: "Zitadel",
        issuer: "{origin}",
    },
    Product {
        domains: &["zitadel.cloud"],
        endpoints: &["/oauth/v2", "/oidc/v1"],
        pages: &[],
        name: "Zitadel",
        issuer: "{origin}",
    },
    Product {
        domains: &["projects.oryapis.com"],
        endpoints: &["/oauth2/auth", "/oauth2/token", "/userinfo"],
        pages: &["/ui"],
        name: "Ory",
        issuer: "{origin}",
    },
    Product {
        domains: &["console.ory.com", "console.ory.sh"],
        endpoints: &[],
        pages: &[""],
        name: "Ory",
        issuer: "https://<slug of the project>.projects.oryapis.com",
    },
    Product {
        domains: &["gitlab.com"],
        endpoints: &[
            "/oauth/authorize",
            "/oauth/discovery/keys",
            "/oauth/introspect",
            "/oauth/token",
            "/oauth/userinfo",
        ],
        pages: &[],
        name: "GitLab",
        issuer: "https://gitlab.com",
    },
];

/// Returns what a URL of a product is, and what its issuer is like.
pub(super) fn misplaced(url: &Url) -> Option<(String, String)> {
    let path = url.path().trim_end_matches('/');
    let is_at = |domains: &[&str]| {
        domains.is_empty() || domains.contains(&host(url)) || is_below(host(url), domains)
    };
    PRODUCTS
        .iter()
        .filter(|product| is_at(product.domains))
        .find_map(|product| {
            let what = if product.endpoints.contains(&path) {
                "the URL of an endpoint of"
            } else if product.pages.iter().any(|page| is_within(path, page)) {
                "a page of"
            } else {
                return None;
            };
            let origin = url.origin().ascii_serialization();
            Some((
                format!("{what} {}", product.name),
                product.issuer.replace("{origin}", &origin),
            ))
        })
}

/// Whether a path is another one or below it.
fn is_within(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The domains of Azure AD B2C and of the external tenants of Entra ID.
const B2C: &[&str] = &["b2clogin.com"];
const EXTERNAL_TENANTS: &[&str] = &["ciamlogin.com"];

/// Returns the problem of an issuer of a product that names itself in another way in its tokens,
/// and the fix. The message follows the URL.
pub(super) fn other_form(issuer: &str, url: &Url) -> Option<String> {
    let segments: Vec<&str> = url.path_segments()?.collect();
    if is_below(host(url), B2C) {
        return of_b2c(&segments, url);
    }
    if is_below(host(url), EXTERNAL_TENANTS) {
        return of_external_tenant(&segments, issuer);
    }
    match segments[..] {
        ["application", "o", slug] if !slug.is_empty() => Some(format!(
            "has no slash at its end, and that of Authentik has one; write {:?}",
            shown_url(&format!("{issuer}/"))
        )),
        [.., "admin", "realms", realm] | [.., "admin", "realms", realm, ""]
            if !realm.is_empty() =>
        {
            let realm = issuer.replacen("/admin/realms/", "/realms/", 1);
            Some(format!(
                "is a URL of Keycloak for administrators; write the issuer of the realm, probably {:?}",
                shown_url(realm.trim_end_matches('/'))
            ))
        }
        [.., "realm", realm] | [.., "realm", realm, ""] if !realm.is_empty() => {
            let path = format!("/realm/{realm}");
            let meant = issuer.trim_end_matches('/').strip_suffix(&path)?;
            Some(format!(
                "has `/realm/` in its path, and issuers of Keycloak have `/realms/`; write the `issuer` that is in the metadata, \
                 probably {:?}",
                shown_url(&format!("{meant}/realms/{realm}"))
            ))
        }
        [.., "realms", realm, ""] if !realm.is_empty() => Some(format!(
            "has a slash at its end, and those of Keycloak have none; write {:?}",
            shown_url(issuer.trim_end_matches('/'))
        )),
        _ => None,
    }
}

fn of_b2c(segments: &[&str], url: &Url) -> Option<String> {
    let tenant = match segments {
        ["tfp", tenant, ..] | [tenant, ..] => tenant,
        [] => "",
    };
    (!is_uuid(tenant)).then(|| {
        format!(
            "is not an issuer of Azure AD B2C, which has the ID of the tenant; write the `issuer` that is in the metadata, probably \
             \"{}/<tenant ID>/v2.0/\"",
            url.origin().ascii_serialization()
        )
    })
}

fn of_external_tenant(segments: &[&str], issuer: &str) -> Option<String> {
    let tenant = segments.first().filter(|tenant| is_uuid(tenant));
    let tenant = tenant.copied().unwrap_or("<tenant ID>");
    let meant = format!("https://{tenant}.ciamlogin.com/{tenant}/v2.0");
    (issuer != meant).then(|| {
        format!(
            "is not an issuer of an external tenant of Entra ID, which has the ID of the tenant twice; write the `issuer` that is in \
             the metadata, probably {meant:?}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str) -> Option<(String, String)> {
        misplaced(&Url::parse(url).unwrap())
    }

    fn form(url: &str) -> String {
        other_form(url, &Url::parse(url).unwrap()).unwrap_or_default()
    }

    /// J9: endpoints and pages of products are recognized.
    #[test]
    fn endpoints_and_pages_are_recognized() {
        const SLUG: &str = "https://a.example/application/o/<slug of the application>/";
        for (url, what, meant) in [
            (
                "https://a.example/application/o/authorize/",
                "an endpoint of Authentik",
                SLUG,
            ),
            (
                "https://a.example/application/o/token",
                "an endpoint of Authentik",
                SLUG,
            ),
            ("https://a.example/if/admin/", "a page of Authentik", SLUG),
            (
                "https://a.example/oauth/v2/keys",
                "an endpoint of Zitadel",
                "https://a.example",
            ),
            (
                "https://a.example/ui/console/",
                "a page of Zitadel",
                "https://a.example",
            ),
            (
                "https://x.zitadel.cloud/oauth/v2",
                "an endpoint of Zitadel",
                "https://x.zitadel.cloud",
            ),
            (
                "https://x.projects.oryapis.com/oauth2/token",
                "an endpoint of Ory",
                "https://x.projects.oryapis.com",
            ),
            (
                "https://console.ory.sh/projects/x",
                "a page of Ory",
                "https://<slug of the project>.projects.oryapis.com",
            ),
            (
                "https://gitlab.com/oauth/token",
                "an endpoint of GitLab",
                "https://gitlab.com",
            ),
        ] {
            let (named, issuer) = found(url).unwrap_or_else(|| panic!("{url}"));
            assert!(named.ends_with(what), "{url}: {named}");
            assert_eq!(issuer, meant, "{url}");
        }
    }

    /// Issuers of these products and of others are none of them.
    #[test]
    fn issuers_are_no_endpoints() {
        for issuer in [
            "https://a.example",
            "https://a.example/",
            "https://a.example/application/o/mcp/",
            "https://a.example/application/o/token-service/",
            "https://a.example/if/administration",
            "https://x.zitadel.cloud",
            "https://curity.example/oauth/v2/oauth-anonymous",
            "https://a.example/oauth/v2",
            "https://wso2.example.com/oauth2/token",
            "https://uaa.example.com/oauth/token",
            "https://x.projects.oryapis.com",
            "https://gitlab.com",
            "https://gitlab.example.com/oauth/token",
            "https://gitlab.com.a.example/oauth/token",
        ] {
            assert_eq!(found(issuer), None, "{issuer}");
        }
    }

    /// J9: an issuer that differs from that in the tokens is named, with the one to write.
    #[test]
    fn other_forms_are_named() {
        const ID: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
        let external = format!("https://{ID}.ciamlogin.com/{ID}/v2.0");
        for (issuer, meant) in [
            (
                "https://a.example/application/o/mcp",
                "https://a.example/application/o/mcp/",
            ),
            (
                "https://a.example/admin/realms/prod",
                "https://a.example/realms/prod",
            ),
            (
                "https://a.example/auth/admin/realms/prod/",
                "https://a.example/auth/realms/prod",
            ),
            (
                "https://a.example/auth/realms/prod/",
                "https://a.example/auth/realms/prod",
            ),
            (
                "https://contoso.b2clogin.com/contoso.onmicrosoft.com/B2C_1_x/v2.0",
                "https://contoso.b2clogin.com/<tenant ID>/v2.0/",
            ),
            (
                "https://contoso.b2clogin.com/tfp/contoso.onmicrosoft.com/B2C_1_x/v2.0/",
                "https://contoso.b2clogin.com/<tenant ID>/v2.0/",
            ),
            (
                "https://contoso.ciamlogin.com/contoso.onmicrosoft.com/v2.0",
                "https://<tenant ID>.ciamlogin.com/<tenant ID>/v2.0",
            ),
            (
                &format!("https://contoso.ciamlogin.com/{ID}/v2.0"),
                &external,
            ),
        ] {
            let form = form(issuer);
            assert!(form.ends_with(&format!("{meant:?}")), "{issuer}: {form}");
        }
        for issuer in [
            "https://a.example/application/o/mcp/",
            "https://a.example/application/o/",
            "https://a.example/realms/prod",
            "https://a.example/realms/",
            "https://a.example/admin/realms",
            &format!("https://contoso.b2clogin.com/{ID}/v2.0/"),
            &format!("https://contoso.b2clogin.com/tfp/{ID}/b2c_1_x/v2.0/"),
            &external,
            "https://login.contoso.com/contoso.onmicrosoft.com/v2.0",
        ] {
            assert_eq!(form(issuer), "", "{issuer}");
        }
    }
}
