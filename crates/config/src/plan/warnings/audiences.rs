//! Audiences that are not names of one resource only.

use portcullis_identity_provider::ProviderKind;
use portcullis_verifier::ApplicationAudience;
use url::Url;

use crate::{
    Config,
    plan::{audiences::Endpoints, folded::folded, known_issuers},
    shown_url,
};

/// Adds warnings about audiences that tokens for other APIs can have, and about patterns.
pub(super) fn warn(config: &Config, base_url: &Url, warnings: &mut Vec<String>) {
    let endpoints = Endpoints::new(config, base_url);
    for (position, issuer) in config.issuer.iter().enumerate() {
        let names = issuer.audiences.names();
        let names = names.filter(|name| !endpoints.has_url(name));
        let problems = names.filter_map(|name| {
            let problem = problem(name, &issuer.issuer)?;
            let shown = shown_url(name);
            Some(format!(
                "issuer[{position}].audiences has {shown:?}, {problem}"
            ))
        });
        warnings.extend(problems);
    }
}

/// Returns the problem of an audience of an issuer, and the fix.
fn problem(audience: &str, issuer: &str) -> Option<String> {
    if audience.contains('*') {
        return Some(
            "and audiences are compared exactly, so that the `*` matches nothing; write each audience as it is in `aud`"
                .to_owned(),
        );
    }
    if let Some((api, own)) = other_api(audience) {
        return Some(format!(
            "which is {api} and not this resource: tokens for that API are accepted here then; write {own}"
        ));
    }
    if ApplicationAudience::parse(audience).is_ok() {
        return Some(
            "which names an application and not this resource: tokens that another API with the same name receives are \
             accepted here too; use a name that only this resource has"
                .to_owned(),
        );
    }
    let what = of_issuer(audience, issuer)?;
    Some(format!(
        "which is {what} and not this resource: tokens for other APIs can have it in `aud`, and are accepted here then; remove \
         it, or write a name that only this resource has"
    ))
}

/// The names of Microsoft Graph in all clouds:
/// <https://learn.microsoft.com/en-us/graph/deployments>.
const MICROSOFT_GRAPH: [&str; 5] = [
    "00000003-0000-0000-c000-000000000000",
    "https://graph.microsoft.com",
    "https://graph.microsoft.us",
    "https://dod-graph.microsoft.us",
    "https://microsoftgraph.chinacloudapi.cn",
];
/// The path of the audience of Auth0's Management API:
/// <https://auth0.com/docs/secure/tokens/access-tokens/management-api-access-tokens>.
const AUTH0_MANAGEMENT: &str = "/api/v2";

/// Returns the API of a provider that an audience names, and what to write instead.
fn other_api(audience: &str) -> Option<(&'static str, &'static str)> {
    let audience = folded(audience);
    if MICROSOFT_GRAPH.contains(&&*audience) {
        return Some((
            "Microsoft Graph",
            "the client ID of your own application at Entra ID",
        ));
    }
    let url = Url::parse(&audience).ok()?;
    let is_auth0 = known_issuers::provider(&url) == Some(ProviderKind::Auth0);
    (is_auth0 && url.path() == AUTH0_MANAGEMENT).then_some((
        "Auth0's Management API",
        "the identifier of an API of your own at Auth0",
    ))
}

/// Returns what an audience is, if it is a URL of the issuer that does not name a resource.
///
/// With the scope `openid`, each JWT of Auth0 has the userinfo endpoint in `aud`, beside its API.
fn of_issuer(audience: &str, issuer: &str) -> Option<&'static str> {
    let (audience, issuer) = (folded(audience), folded(issuer));
    if audience == issuer {
        return Some("the issuer itself");
    }
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    let is_at_issuer = origin(&audience).is_some_and(|own| Some(own) == origin(&issuer));
    (is_at_issuer && audience.ends_with("/userinfo")).then_some("the issuer's userinfo endpoint")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_text;

    fn warned(issuer: &str, audience: &str) -> String {
        let text = format!(
            "base_url = \"https://mcp.example.com\"\n[[issuer]]\nissuer = \"{issuer}\"\naudiences = [\"{audience}\"]\n\
             [[resource]]\nendpoint = \"/userinfo\"\nupstream = \"demo\""
        );
        let mut warnings = Vec::new();
        let base_url = Url::parse("https://mcp.example.com").unwrap();
        warn(&from_text(&text).unwrap(), &base_url, &mut warnings);
        assert!(warnings.len() < 2, "{warnings:#?}");
        warnings.pop().unwrap_or_default()
    }

    /// C6, J9: a name that tokens for other APIs can have is named.
    #[test]
    fn names_of_others_are_named() {
        const AUTH0: &str = "https://example.eu.auth0.com/";
        const REALM: &str = "https://auth.example.com/realms/prod";
        const ENTRA: &str =
            "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0";
        for (issuer, audience, words) in [
            (
                AUTH0,
                "https://example.eu.auth0.com/userinfo",
                "which is the issuer's userinfo endpoint and",
            ),
            (
                AUTH0,
                "https://example.eu.auth0.com",
                "which is the issuer itself",
            ),
            (AUTH0, AUTH0, "which is the issuer itself"),
            (REALM, REALM, "which is the issuer itself"),
            (
                REALM,
                "https://auth.example.com/realms/prod/protocol/openid-connect/userinfo",
                "userinfo endpoint",
            ),
            (REALM, "api://mcp", "which names an application"),
            (
                REALM,
                "https://mcp.example.com/*",
                "the `*` matches nothing",
            ),
            (
                ENTRA,
                "00000003-0000-0000-C000-000000000000",
                "which is Microsoft Graph and not this resource",
            ),
            (
                ENTRA,
                "https://graph.microsoft.com/",
                "write the client ID of your own application",
            ),
            (
                AUTH0,
                "https://example.eu.auth0.com/api/v2/",
                "which is Auth0's Management API and",
            ),
        ] {
            let warning = warned(issuer, audience);
            let start = format!("issuer[0].audiences has {audience:?}, which ");
            assert!(
                warning.starts_with(&start) || audience.ends_with('*'),
                "{warning}"
            );
            assert!(warning.contains(words), "{audience}: {warning}");
        }
        for (issuer, audience) in [
            (AUTH0, "https://example.eu.auth0.com/mcp"),
            (AUTH0, "https://api.example.com/userinfo"),
            (REALM, "https://auth.example.com/mcp"),
            (REALM, "https://auth.example.com/api/v2/"),
            (ENTRA, "https://graph.microsoft.com.example/mcp"),
            (
                "https://mcp.example.com",
                "https://mcp.example.com/userinfo",
            ),
            (
                "https://mcp.example.com/userinfo",
                "https://mcp.example.com/userinfo/",
            ),
        ] {
            assert_eq!(warned(issuer, audience), "", "{audience}");
        }
    }
}
