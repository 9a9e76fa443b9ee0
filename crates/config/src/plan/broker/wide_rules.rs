//! Rules of a provider that more users meet than they are probably meant for.

use portcullis_identity_provider::ProviderKind;

use super::provider_rules::{ProviderRule, provider_rules};
use crate::file::BrokerProvider;

/// Claims whose values tell users apart, and that most users have. Some providers put their name or
/// a URL in front.
const LISTS: &[&str] = &["groups", "roles"];

/// Adds warnings about entries of `grant` whose scopes all users have, and about rules that any
/// group or role meets.
pub(super) fn warn(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    warn_of_unconditional_grants(provider, key, warnings);
    warn_of_any_value(provider, key, warnings);
}

fn warn_of_unconditional_grants(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    let grants = || provider.grant().iter().enumerate();
    for (number, grant) in grants().filter(|(_, grant)| grant.claim.is_some()) {
        let mut for_all = grants().filter(|(_, other)| other.claim.is_none());
        let has_all = |scopes: &[String]| grant.scopes.iter().all(|name| scopes.contains(name));
        if let Some((other, _)) = for_all.find(|(_, other)| has_all(&other.scopes)) {
            warnings.push(format!(
                "{key}.grant[{number}] has no effect, because {key}.grant[{other}], which has no claim, gives all users {:?}; remove \
                 that from the scopes of grant[{other}], or remove grant[{number}]",
                grant.scopes
            ));
        }
    }
}

fn warn_of_any_value(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    // Entra ID sends the roles of the application, which administrators assign: any of them can be
    // a reason to let a user in.
    let is_assigned = |rule: &ProviderRule<'_>| {
        ProviderKind::from(provider.kind) == ProviderKind::Entra
            && rule.claim == "roles"
            && !rule.is_grant
    };
    let rules = provider_rules(provider, key).filter(|rule| {
        rule.one_of.is_none() && !rule.has_domain && is_list(rule.claim) && !is_assigned(rule)
    });
    for ProviderRule { key, claim, .. } in rules {
        warnings.push(format!(
            "{key} has no one_of, so that users with any value of {claim:?} meet it, and most users have one; list the values, \
             such as one_of = [\"mcp-users\"]"
        ));
    }
}

fn is_list(claim: &str) -> bool {
    let name = claim.rsplit(['/', ':']).next().unwrap_or(claim);
    LISTS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_text;

    fn warnings(kind: &str, rules: &str) -> Vec<String> {
        let config = from_text(&format!(
            "base_url = \"https://mcp.example.com\"\n[[broker.provider]]\nkind = \"{kind}\"\nclient_id = \"x\"\n\
             client_secret = {{ env = \"X\" }}\n{rules}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\""
        ));
        let mut warnings = Vec::new();
        let config = config.unwrap();
        warn(
            config.providers().next().unwrap(),
            "provider",
            &mut warnings,
        );
        warnings
    }

    /// J9: an entry for some users is named if all users have its scopes, in any order.
    #[test]
    fn grants_that_all_users_have_are_named() {
        const ALL: &str = "{ scopes = [\"mcp:tools\", \"mcp:admin\"] }";
        const ADMIN: &str = "{ claim = \"roles\", one_of = [\"a\"], scopes = [\"mcp:admin\"] }";
        for (grants, start) in [
            (
                format!("{ALL}, {ADMIN}"),
                "provider.grant[1] has no effect, because provider.grant[0]",
            ),
            (
                format!("{ADMIN}, {ALL}"),
                "provider.grant[0] has no effect, because provider.grant[1]",
            ),
        ] {
            let warnings = warnings("oidc", &format!("grant = [{grants}]"));
            assert_eq!(warnings.len(), 1, "{warnings:#?}");
            assert!(warnings[0].starts_with(start), "{warnings:#?}");
            assert!(
                warnings[0].contains("[\"mcp:admin\"]; remove"),
                "{warnings:#?}"
            );
        }
        for grants in [
            format!("{{ scopes = [\"mcp:tools\"] }}, {ADMIN}"),
            format!(
                "{{ scopes = [\"mcp:tools\"] }}, {{ claim = \"roles\", one_of = [\"a\"], scopes = [\"mcp:tools\", \"mcp:admin\"] }}, {ADMIN}"
            ),
        ] {
            let warnings = warnings("oidc", &format!("grant = [{grants}]"));
            assert_eq!(warnings, Vec::<String>::new(), "{grants}");
        }
    }

    /// J9: rules that any group or role meets are named, and those about other claims are not.
    #[test]
    fn rules_without_values_are_named() {
        for (kind, rules, key) in [
            ("oidc", "allow = [{ claim = \"groups\" }]", "allow[0]"),
            (
                "keycloak",
                "allow = [{ claim = \"/realm_access/roles\" }]",
                "allow[0]",
            ),
            (
                "cognito",
                "allow = [{ claim = \"cognito:groups\" }]",
                "allow[0]",
            ),
            ("entra", "allow = [{ claim = \"groups\" }]", "allow[0]"),
            (
                "entra",
                "grant = [{ claim = \"roles\", scopes = [\"mcp:admin\"] }]",
                "grant[0]",
            ),
            ("entra", "allow = [{ claim = \"roles\" }]", ""),
            (
                "oidc",
                "allow = [{ claim = \"groups\", one_of = [\"a\"] }]",
                "",
            ),
            ("oidc", "allow = [{ claim = \"employee_number\" }]", ""),
            (
                "oidc",
                "grant = [{ claim = \"staff\", scopes = [\"mcp:admin\"] }, { scopes = [\"mcp:tools\"] }]",
                "",
            ),
        ] {
            let warnings = warnings(kind, rules);
            assert_eq!(
                warnings.is_empty(),
                key.is_empty(),
                "{rules}: {warnings:#?}"
            );
            let start = format!("provider.{key} has no one_of");
            assert!(
                warnings.iter().all(|warning| warning.starts_with(&start)),
                "{rules}: {warnings:#?}"
            );
        }
    }
}
