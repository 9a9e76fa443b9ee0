//! Values that are valid, and that probably mean something else: patterns where texts are compared
//! exactly, paths into objects with dots, reversed headers, and documentation that is not a URL.

use super::claim_values;
use crate::{
    Config,
    file::{Claim, Issuer, Resource},
    plan::url_fix::web_fix,
    shown_url, toml_text,
};
use url::Url;

/// Claims of common providers that are objects.
const OBJECTS: [&str; 4] = [
    "realm_access.",
    "resource_access.",
    "app_metadata.",
    "user_metadata.",
];

/// Adds warnings about values that probably mean something else.
pub(super) fn warn(config: &Config, warnings: &mut Vec<String>) {
    for (position, issuer) in config.issuer.iter().enumerate() {
        warn_of_issuer(issuer, &format!("issuer[{position}]"), warnings);
    }
    for (position, resource) in config.resource.iter().enumerate() {
        let key = format!("resource[{position}]");
        if let Some((path, _)) = resource.endpoint.split_once('*') {
            let path = path.trim_end_matches('/');
            let path = if path.is_empty() { "/mcp" } else { path };
            warnings.push(format!(
                "{key}.endpoint = {:?} has a `*`, and paths are compared exactly; write {}, and another [[resource]] for \
                 each further path",
                resource.endpoint,
                toml_text::string(path)
            ));
        }
        if let Some(documentation) = &resource.resource_documentation
            && !Url::parse(documentation).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        {
            warnings.push(format!(
                "{key}.resource_documentation = {:?} is not the URL of a page; {}",
                shown_url(documentation),
                web_fix(documentation, "https://mcp.example.com/docs")
            ));
        }
        warn_of_reversed_headers(resource, &key, warnings);
        for (number, rule) in resource.claim.iter().enumerate() {
            warn_of_claim(rule, &format!("{key}.claim[{number}]"), warnings);
        }
        for (number, rule) in resource.rule.iter().enumerate() {
            for (position, claim) in rule.claims.iter().enumerate() {
                let key = format!("{key}.rule[{number}].claims[{position}]");
                warn_of_claim(claim, &key, warnings);
            }
        }
    }
}

fn warn_of_claim(rule: &Claim, key: &str, warnings: &mut Vec<String>) {
    warnings.extend(dotted(&format!("{key}.claim"), &rule.claim));
    let one_of = rule.one_of.as_deref().unwrap_or_default();
    claim_values::warn(key, &rule.claim, one_of, warnings);
}

fn warn_of_issuer(issuer: &Issuer, key: &str, warnings: &mut Vec<String>) {
    for claim in &issuer.scope_claims {
        warnings.extend(dotted(&format!("{key}.scope_claims"), claim));
    }
}

/// Warns of identity headers whose claim has the name of a header, such as `sub = "X-User"`.
fn warn_of_reversed_headers(resource: &Resource, key: &str, warnings: &mut Vec<String>) {
    let is_header = |name: &str| {
        name.get(..2)
            .is_some_and(|start| start.eq_ignore_ascii_case("x-"))
    };
    for (header, claim) in resource.identity_headers.iter().flatten() {
        if is_header(claim) && !is_header(header) {
            warnings.push(format!(
                "{key}.identity_headers has {header:?} = {claim:?}, which sends the claim {claim:?} in the header {header:?}; to \
                 send the claim {header:?}, write {} = {}",
                toml_text::string(claim),
                toml_text::string(header)
            ));
        }
    }
}

/// Warns of a path into an object that is written with dots.
fn dotted(key: &str, claim: &str) -> Option<String> {
    OBJECTS.iter().any(|object| claim.starts_with(object)).then(|| {
        let pointer = toml_text::string(&format!("/{}", claim.replace('.', "/")));
        format!("{key} has {claim:?}, which is a claim of exactly this name; for a member of an object, write {pointer}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_text;

    fn warnings(issuer: &str, resource: &str) -> Vec<String> {
        let text = format!(
            "base_url = \"https://mcp.example.com\"\n[[issuer]]\n{issuer}\n[[resource]]\nupstream = \"demo\"\n{resource}"
        );
        let mut warnings = Vec::new();
        warn(&from_text(&text).unwrap(), &mut warnings);
        warnings
    }

    /// J9: values that work, and probably mean something else, have a warning with the fix.
    #[test]
    fn probable_mistakes_are_named() {
        const ISSUER: &str = "issuer = \"https://auth.example.com\"";
        const ENDPOINT: &str = "endpoint = \"/mcp\"";
        for (issuer, resource, words) in [
            (ISSUER, "endpoint = \"/mcp/*\"", "write \"/mcp\""),
            (
                &format!("{ISSUER}\nscope_claims = [\"realm_access.roles\"]"),
                ENDPOINT,
                "write \"/realm_access/roles\"",
            ),
            (
                ISSUER,
                &format!("{ENDPOINT}\nidentity_headers = {{ sub = \"X-User\" }}"),
                "write \"X-User\" = \"sub\"",
            ),
            (ISSUER, "endpoint = \"/*\"", "write \"/mcp\""),
            (
                ISSUER,
                &format!("{ENDPOINT}\nresource_documentation = \"docs\""),
                "write a URL such as \"https://",
            ),
            (
                ISSUER,
                &format!("{ENDPOINT}\n[[resource.claim]]\nclaim = \"resource_access.mcp\""),
                "\"/resource_access/mcp\"",
            ),
            (
                ISSUER,
                &format!(
                    "{ENDPOINT}\n[[resource.rule]]\nmethod = \"*\"\nclaims = [{{ claim = \"app_metadata.mcp\" }}]"
                ),
                "rule[0].claims[0].claim has \"app_metadata.mcp\"",
            ),
        ] {
            let warnings = warnings(issuer, resource);
            assert_eq!(warnings.len(), 1, "{words}: {warnings:#?}");
            assert!(warnings[0].contains(words), "{words}: {warnings:#?}");
        }
        let sound = format!(
            "{ISSUER}\nscope_claims = [\"permissions\", \"/realm_access/roles\", \"https://a.example/roles\"]"
        );
        let headers =
            format!("{ENDPOINT}\nidentity_headers = {{ \"X-User\" = \"sub\", X-Id = \"x-id\" }}");
        assert_eq!(warnings(&sound, &headers), Vec::<String>::new());
    }
}
