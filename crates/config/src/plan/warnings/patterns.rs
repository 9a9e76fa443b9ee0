//! Values that are valid, and that probably mean something else: patterns where texts are compared
//! exactly, paths into objects with dots, reversed headers, and documentation that is not a URL.

use std::collections::BTreeMap;

use super::claim_values;
use crate::{
    Config,
    file::{BrokerProvider, Claim, Issuer, Resource},
    plan::{
        broker::{plain_name, provider_rules},
        entra::is_entra,
        url_fix::web_fix,
    },
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
    let claims = config.broker.as_ref().map(|broker| broker.claims.clone());
    let claims = claims.unwrap_or_default();
    for claim in claims.values() {
        warnings.extend(misread("broker.claims", claim));
    }
    for (position, provider) in config.providers().enumerate() {
        warn_of_provider(provider, &format!("broker.provider[{position}]"), warnings);
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
        // The broker can write a claim of any name.
        let is_mapped = |claim: &&String| claims.contains_key(*claim);
        let headers = resource.identity_headers.iter().flat_map(BTreeMap::values);
        for claim in headers.filter(|claim| !is_mapped(claim)) {
            warnings.extend(misread(&format!("{key}.identity_headers"), claim));
        }
        for (number, rule) in resource.claim.iter().enumerate() {
            let rule_key = format!("{key}.claim[{number}]");
            warn_of_claim(rule, &rule_key, warnings);
            let fix = "write required_scopes in [[resource]]";
            warnings.extend(list_of_scopes(rule, &config.issuer, &rule_key, fix));
        }
        for (number, rule) in resource.rule.iter().enumerate() {
            for (position, claim) in rule.claims.iter().enumerate() {
                let key = format!("{key}.rule[{number}].claims[{position}]");
                warn_of_claim(claim, &key, warnings);
                let fix = "write scopes in the rule";
                warnings.extend(list_of_scopes(claim, &config.issuer, &key, fix));
            }
        }
    }
}

fn warn_of_claim(rule: &Claim, key: &str, warnings: &mut Vec<String>) {
    warnings.extend(misread(&format!("{key}.claim"), &rule.claim));
    let one_of = rule.one_of.as_deref().unwrap_or_default();
    claim_values::warn(key, &plain_name(&rule.claim), one_of, warnings);
}

/// Returns the warning about a rule for one of the scopes in a claim that has all of them in one
/// text (RFC 9068, section 2.2.3). `scp` is a list at others than Entra ID.
fn list_of_scopes(rule: &Claim, issuers: &[Issuer], key: &str, fix: &str) -> Option<String> {
    let is_entra = |issuer: &Issuer| Url::parse(&issuer.issuer).is_ok_and(|url| is_entra(&url));
    let is_list = match &*plain_name(&rule.claim) {
        "scope" => true,
        "scp" => issuers.iter().any(is_entra),
        _ => false,
    };
    (is_list && rule.one_of.is_some()).then(|| {
        format!(
            "{key}.one_of is compared exactly with the whole claim {:?}, which has all scopes of the token in one text; {fix} in \
             place of the requirement",
            rule.claim
        )
    })
}

fn warn_of_issuer(issuer: &Issuer, key: &str, warnings: &mut Vec<String>) {
    for claim in &issuer.scope_claims {
        warnings.extend(misread(&format!("{key}.scope_claims"), claim));
    }
}

/// Values of these rules have warnings elsewhere.
fn warn_of_provider(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    for rule in provider_rules(provider, key) {
        warnings.extend(misread(&format!("{}.claim", rule.key), rule.claim));
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

/// Warns of a path into an object that is not written as a JSON pointer, and of a claim with a URL
/// as its name that is written as one.
fn misread(key: &str, claim: &str) -> Option<String> {
    if let Some(name) = claim.strip_prefix('/').filter(|name| is_url(name)) {
        return Some(format!(
            "{key} has {claim:?}, which is a path into the claim {:?}; for the claim with this URL as its name, write {}",
            name.split('/').next().unwrap_or_default(),
            toml_text::string(name)
        ));
    }
    let is_in_object = |path: &&str| OBJECTS.iter().any(|object| path.starts_with(object));
    let path = claim
        .strip_prefix("$.")
        .or_else(|| Some(claim).filter(is_in_object))?;
    let pointer = toml_text::string(&format!("/{}", path.replace('.', "/")));
    Some(format!(
        "{key} has {claim:?}, which is a claim of exactly this name; for a member of an object, write {pointer}"
    ))
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
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
            (
                ISSUER,
                &format!(
                    "{ENDPOINT}\nidentity_headers = {{ \"X-Roles\" = \"realm_access.roles\" }}"
                ),
                "write \"/realm_access/roles\"",
            ),
            (
                ISSUER,
                &format!("{ENDPOINT}\n[[resource.claim]]\nclaim = \"$.org.roles\""),
                "write \"/org/roles\"",
            ),
            (
                ISSUER,
                &format!("{ENDPOINT}\n[[resource.claim]]\nclaim = \"/https://a.example/roles\""),
                "write \"https://a.example/roles\"",
            ),
            (
                ISSUER,
                &format!(
                    "{ENDPOINT}\n[[broker.provider]]\nkind = \"okta\"\nclient_id = \"x\"\nclient_secret = {{ env = \"X\" }}\n\
                     allow = [{{ claim = \"groups\", one_of = [\"a\"] }}, {{ claim = \"$.a.b\" }}]"
                ),
                "broker.provider[0].allow[1].claim has \"$.a.b\"",
            ),
            (
                ISSUER,
                &format!(
                    "{ENDPOINT}\nidentity_headers = {{ \"X-Roles\" = \"realm_access.roles\" }}\n\
                     [broker]\nclaims = {{ \"realm_access.roles\" = \"realm_access.roles\" }}\nprovider = []"
                ),
                "broker.claims has \"realm_access.roles\"",
            ),
            (ISSUER, "endpoint = \"/*\"", "write \"/mcp\""),
            (
                ISSUER,
                &format!(
                    "{ENDPOINT}\n[[resource.claim]]\nclaim = \"scope\"\none_of = [\"mcp:tools\"]"
                ),
                "resource[0].claim[0].one_of is compared exactly with the whole claim \"scope\"",
            ),
            (
                "issuer = \"https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0\"",
                &format!(
                    "{ENDPOINT}\n[[resource.rule]]\nmethod = \"*\"\nclaims = [{{ claim = \"/scp\", one_of = [\"tools\"] }}]"
                ),
                "; write scopes in the rule in place of the requirement",
            ),
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
            "{ISSUER}\nscope_claims = [\"permissions\", \"/realm_access/roles\", \"https://a.example/roles\", \"/https:~1~1a.example~1roles\"]"
        );
        let headers =
            format!("{ENDPOINT}\nidentity_headers = {{ \"X-User\" = \"sub\", X-Id = \"x-id\" }}");
        assert_eq!(warnings(&sound, &headers), Vec::<String>::new());
        let list = format!("{ENDPOINT}\n[[resource.claim]]\nclaim = \"scp\"\none_of = [\"tools\"]");
        assert_eq!(warnings(ISSUER, &list), Vec::<String>::new());
    }
}
