//! Audiences that are not names of one resource only.

use portcullis_verifier::ApplicationAudience;
use url::Url;

use crate::{
    Config,
    plan::{audiences::Endpoints, folded::folded},
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
        ] {
            let warning = warned(issuer, audience);
            assert!(
                warning.starts_with("issuer[0].audiences has \"https://")
                    || audience == "api://mcp"
            );
            assert!(warning.contains(words), "{audience}: {warning}");
        }
        for (issuer, audience) in [
            (AUTH0, "https://example.eu.auth0.com/mcp"),
            (AUTH0, "https://api.example.com/userinfo"),
            (REALM, "https://auth.example.com/mcp"),
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
