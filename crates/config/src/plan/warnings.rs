//! Warnings of `serve` and `check` about configurations that run but should change.

mod audiences;
pub(super) mod claim_values;
mod entra_scopes;
mod hosts;
mod implications;
mod issuers;
mod method_fix;
mod names;
mod network;
mod paths;
mod patterns;
mod requested_scopes;
mod routes;
pub(super) mod shared_address;

pub(super) use network::unspecified_host;
pub use network::{has_public_host, is_public_address};

use portcullis_endpoint::NameGlob;
use portcullis_mcp::{Revision, Revisions, client_methods};
use portcullis_metadata::{Scopes, syntax::is_loopback};
use url::Url;

use super::ResourcePlan;
use crate::{
    Config, Diagnostic, KeyPath,
    file::{Authorization, Resource},
    placeholders,
    similar::intended_scope,
};

use crate::container::is_container;

/// Scope names that do not describe what a token with them allows.
const CATCH_ALL: &[&str] = &[
    "*",
    "all",
    "api",
    "admin",
    "default",
    "full",
    "full_access",
    "full-access",
    "openid",
];

/// Returns all warnings of a configuration. `resources` are the plans of its resources, in the same
/// order.
pub(super) fn warnings(
    config: &Config,
    base_url: &Url,
    resources: &[ResourcePlan],
) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (position, (resource, configured)) in resources.iter().zip(&config.resource).enumerate() {
        let key = format!("resource[{position}]");
        warn_of_resource(resource, configured, config, &key, &mut warnings);
    }
    audiences::warn(config, base_url, &mut warnings);
    warn_of_loopback(config, base_url, is_container(), &mut warnings);
    network::warn(config, base_url, is_container(), &mut warnings);
    hosts::warn(config, &mut warnings);
    patterns::warn(config, &mut warnings);
    issuers::warn(config, &mut warnings);
    paths::warn(config, &mut warnings);
    warnings
        .iter()
        .map(|text| Diagnostic::new(&KeyPath::default(), text))
        .chain(placeholders::warnings(config))
        .collect()
}

/// Warns of missing authorization, of scopes that clients do not request, and of rules and routes
/// that never apply.
fn warn_of_resource(
    resource: &ResourcePlan,
    configured: &Resource,
    config: &Config,
    key: &str,
    warnings: &mut Vec<String>,
) {
    let issuers = &config.issuer;
    let endpoint = &resource.endpoint;
    if resource.authorization == Authorization::None {
        let has_requirements = !resource.required_scopes.is_empty()
            || !resource.claims.is_empty()
            || !resource.routes.is_empty()
            || resource
                .rules
                .iter()
                .any(|rule| !rule.scopes.is_empty() || !rule.claims.is_empty());
        let without_effect = if has_requirements {
            ", and the scopes and claims that it requires have no effect"
        } else {
            ""
        };
        warnings.push(format!(
            "{key}.auth = \"none\" for {endpoint:?}: anyone who can reach it can use it{without_effect}; remove it to require \
             tokens"
        ));
    }
    let needed = needed_scopes(resource, key);
    warn_of_joined_scopes(resource, &needed, key, warnings);
    warn_of_wildcards(resource, configured, &needed, key, warnings);
    for (key, scopes) in &needed {
        for name in scopes.iter().filter(|name| CATCH_ALL.contains(name)) {
            warnings.push(format!(
                "{key} has the catch-all scope {name:?}; use a name that says what it allows"
            ));
        }
    }
    routes::warn(resource, key, warnings);
    let supported = &resource.metadata.scopes_supported;
    let is_entra = entra_scopes::are_all(resource, issuers);
    if is_entra {
        entra_scopes::warn(&needed, warnings);
        entra_scopes::warn_of_supported(supported, &needed, key, warnings);
    }
    let has_warning = |scope: &str| {
        scope.contains(',')
            || has_wildcard(scope, configured)
            || (is_entra && entra_scopes::problem(scope).is_some())
    };
    let are_requested = !supported.is_empty() && requested_scopes::are_all(resource, issuers);
    for (key, scopes) in needed.iter().filter(|_| are_requested) {
        for scope in scopes
            .filter(|scope| !has_warning(scope))
            .in_listed_form(supported)
            .iter()
            .filter(|scope| !supported.iter().any(|name| name == scope))
        {
            warnings.push(unsupported_scope(key, scope, supported));
        }
    }
    implications::warn(configured, &needed, key, warnings);
    if are_requested {
        implications::warn_of_misspelled(config, configured, &needed, key, warnings);
    }
    implications::warn_of_required(resource, configured, key, warnings);
    implications::warn_of_reversed(resource, configured, &needed, warnings);
    for (position, rule) in resource.rules.iter().enumerate() {
        let key = format!("{key}.rule[{position}]");
        warnings.extend(names::warnings(rule, resource.revisions, &key));
        let warning = rule
            .method
            .as_ref()
            .and_then(|method| unknown_method(method, resource.revisions));
        warnings.extend(warning.map(|warning| format!("{key}.method = {warning}")));
    }
}

/// Warns of lists of scopes that are written in one string.
fn warn_of_joined_scopes(
    resource: &ResourcePlan,
    needed: &[(String, &Scopes)],
    key: &str,
    warnings: &mut Vec<String>,
) {
    for (key, name) in listed_scopes(resource, needed, key) {
        let names: Vec<&str> = name.split(',').filter(|name| !name.is_empty()).collect();
        if name.contains(',') {
            warnings.push(format!(
                "{key} has {name:?}, which is one scope with a comma in its name; write each scope in a string of its own: \
                 {names:?}"
            ));
        }
    }
}

/// Warns of scopes that are written as patterns.
fn warn_of_wildcards(
    resource: &ResourcePlan,
    configured: &Resource,
    needed: &[(String, &Scopes)],
    key: &str,
    warnings: &mut Vec<String>,
) {
    for (key, name) in listed_scopes(resource, needed, key) {
        if has_wildcard(name, configured) {
            warnings.push(format!(
                "{key} has {name:?}, and scopes have no wildcards, so that only a token with a scope of exactly this name has it; \
                 write each scope, or one that implies others by scope_implies"
            ));
        }
    }
}

/// Whether a scope is meant as a pattern. One that implies others is the name of a scope, and a
/// star alone is a catch-all scope.
fn has_wildcard(scope: &str, configured: &Resource) -> bool {
    scope.contains('*') && scope != "*" && !configured.scope_implies.contains_key(scope)
}

/// Returns the scopes that a resource requires or publishes, each with its key.
fn listed_scopes<'a>(
    resource: &'a ResourcePlan,
    needed: &'a [(String, &Scopes)],
    key: &str,
) -> impl Iterator<Item = (String, &'a str)> {
    let supported = resource.metadata.scopes_supported.iter();
    let key = format!("{key}.scopes_supported");
    let supported = supported.map(move |name| (key.clone(), name.as_str()));
    let needed = needed
        .iter()
        .flat_map(|(key, scopes)| scopes.iter().map(|name| (key.clone(), name)));
    needed.chain(supported)
}

/// Returns the scopes that a resource requires, each list with its key.
fn needed_scopes<'a>(resource: &'a ResourcePlan, key: &str) -> Vec<(String, &'a Scopes)> {
    let required = [(format!("{key}.required_scopes"), &resource.required_scopes)];
    let rules = resource.rules.iter().enumerate();
    let rules =
        rules.map(|(position, rule)| (format!("{key}.rule[{position}].scopes"), &rule.scopes));
    let routes = resource.routes.iter().enumerate();
    let routes =
        routes.map(|(position, route)| (format!("{key}.route[{position}].scopes"), &route.scopes));
    required.into_iter().chain(rules).chain(routes).collect()
}

/// Returns the warning about a required scope that is not listed.
fn unsupported_scope(key: &str, scope: &str, supported: &[String]) -> String {
    let supported: Vec<_> = supported.iter().map(String::as_str).collect();
    format!(
        "{key} has {scope:?}, which is missing in scopes_supported, so clients do not request it; correct it or add it there{}",
        intended_scope(scope, &supported)
    )
}

/// Returns the pattern and its problem if no method of the served revisions matches it in its
/// letter case.
fn unknown_method(pattern: &NameGlob, served: Revisions) -> Option<String> {
    let text = pattern.as_str();
    let matching = |revisions| client_methods(revisions).find(|method| pattern.matches(method));
    if let Some(method) = matching(served) {
        let exact = client_methods(served).any(|method| matches_in_this_case(text, method));
        return (!exact).then(|| {
            format!(
                "{text:?} has another letter case than {method:?}; the rule ignores letter case, but MCP does not: \
                 correct it"
            )
        });
    }
    let names: Vec<_> = served.iter().map(Revision::as_str).collect();
    let names = names.join(", ");
    if matching(Revisions::ALL).is_some() {
        return Some(format!(
            "{text:?} is a method of other revisions than the served ones ({names}), so the rule protects nothing; \
             remove the rule or correct `revisions`"
        ));
    }
    let known: Vec<_> = client_methods(served).collect();
    Some(format!(
        "{text:?} is not a method of the served revisions ({names}), so the rule protects nothing unless the \
         upstream has such a method of its own{}",
        method_fix::method_fix(text, &known)
    ))
}

/// Returns whether a pattern that matches a method also matches it in this letter case.
fn matches_in_this_case(pattern: &str, method: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == method;
    };
    let Some(mut method) = method.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(found) = method.find(part) else {
            return false;
        };
        method = &method[found + part.len()..];
    }
    method.ends_with(tail)
}

/// Warns of a mix of loopback and other addresses, which some clients cannot reach.
fn warn_of_loopback(
    config: &Config,
    base_url: &Url,
    is_container: bool,
    warnings: &mut Vec<String>,
) {
    if is_loopback(base_url) {
        // The port of a container can be published on the loopback address.
        if !config.listen.ip().is_loopback() && !is_container {
            warnings.push(format!(
                "listen = \"{}\" is open to the network, but base_url is a loopback address, so requests from \
                 other machines are rejected; set base_url to what clients see",
                config.listen
            ));
        }
        return;
    }
    let is_local =
        |text: &str| Url::parse(text).is_ok_and(|url| url.scheme() == "http" && is_loopback(&url));
    let local = |key: String, issuer: &str, who: &str, what: &str| {
        format!(
            "{key}.issuer = {issuer:?} is http on a loopback address, but base_url is not: {who} on other machines cannot \
             reach it; set it to the https address of the {what}"
        )
    };
    for (position, issuer) in config.issuer.iter().enumerate() {
        if is_local(&issuer.issuer) {
            let key = format!("issuer[{position}]");
            warnings.push(local(
                key,
                &issuer.issuer,
                "clients",
                "authorization server",
            ));
        }
    }
    let providers = config.broker.iter().flat_map(|broker| &broker.provider);
    for (position, provider) in providers.enumerate() {
        let issuer = provider.issuer.as_deref();
        if let Some(issuer) = issuer.filter(|issuer| is_local(issuer)) {
            let key = format!("broker.provider[{position}]");
            warnings.push(local(key, issuer, "browsers", "provider"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_text;

    fn warned(pattern: &str, served: Revisions) -> String {
        unknown_method(&NameGlob::parse(pattern).unwrap(), served).unwrap_or_default()
    }

    /// J9: the example for containers causes no warning in the image, which listens on all
    /// addresses.
    #[test]
    fn the_example_for_containers_causes_no_warning() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../deploy/compose/portcullis.toml"
        );
        let mut config = from_text(&std::fs::read_to_string(file).unwrap()).unwrap();
        config.listen = "0.0.0.0:3000".parse().unwrap();
        let base_url = Url::parse(&config.base_url).unwrap();
        let warned = |is_container| {
            let mut warnings = Vec::new();
            warn_of_loopback(&config, &base_url, is_container, &mut warnings);
            network::warn(&config, &base_url, is_container, &mut warnings);
            warnings
        };
        assert_eq!(warned(true), Vec::<String>::new());
        assert_eq!(warned(false).len(), 1);
    }

    /// J9: authorization servers and providers that only this machine can reach are named, unless
    /// clients are on this machine, too.
    #[test]
    fn issuers_on_loopback_are_named() {
        let text = "[[issuer]]\nissuer = 'http://127.0.0.1:9000'\n[[broker.provider]]\nkind = 'google'\n\
                    issuer = 'http://localhost:9000'\nclient_id = 'a'\nclient_secret = { env = 'A' }\n\
                    [[broker.provider]]\nkind = 'google'\nclient_id = 'b'\nclient_secret = { env = 'B' }\n\
                    [[resource]]\nendpoint = '/mcp'\nupstream = 'demo'";
        let warned = |base_url: &str| {
            let config = from_text(&format!("base_url = '{base_url}'\n{text}")).unwrap();
            let mut warnings = Vec::new();
            let base_url = Url::parse(base_url).unwrap();
            warn_of_loopback(&config, &base_url, false, &mut warnings);
            warnings
        };
        let found = warned("https://mcp.example.com");
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].starts_with("issuer[0].issuer = "), "{found:#?}");
        assert!(found[1].starts_with("broker.provider[0].issuer = \"http://localhost:9000\""));
        assert!(found[1].contains("browsers on other machines cannot reach it"));
        assert_eq!(warned("https://localhost:8443"), Vec::<String>::new());
    }

    /// B9: patterns that match a method of a served revision cause no warning, with any number of
    /// stars.
    #[test]
    fn known_methods_cause_no_warning() {
        for pattern in [
            "tools/call",
            "tools/*",
            "*",
            "**",
            "*/list",
            "notifications/*/list_changed",
            "t*l*/c*",
            "logging/setLevel",
            "ping",
        ] {
            assert_eq!(warned(pattern, Revisions::ALL), "", "{pattern}");
        }
    }

    /// B9: a warning names an unknown method and the most similar known one. Another letter case
    /// and another revision have warnings of their own.
    #[test]
    fn unknown_methods_cause_a_warning() {
        for (pattern, words) in [
            (
                "tool/call",
                ["protects nothing", "did you mean `tools/call`?"],
            ),
            (
                "tools/cal",
                ["protects nothing", "did you mean `tools/call`?"],
            ),
            (
                "resource/*",
                ["protects nothing", "did you mean `resources/"],
            ),
            (
                "tools/call/*",
                ["protects nothing", "did you mean `tools/call`?"],
            ),
            (
                "sampling/createMessage",
                [
                    "protects nothing",
                    "served revisions (2026-07-28, 2025-11-25, 2025-06-18",
                ],
            ),
            ("Tools/Call", ["another letter case", "\"tools/call\""]),
            ("TOOLS/*", ["another letter case", "\"tools/call\""]),
            (
                "logging/setlevel",
                ["another letter case", "\"logging/setLevel\""],
            ),
        ] {
            let warning = warned(pattern, Revisions::ALL);
            assert!(
                words.iter().all(|word| warning.contains(word)),
                "{pattern}: {warning}"
            );
        }
        let modern = Revisions::from_iter([Revision::V2026_07_28]);
        assert!(
            warned("initialize", modern)
                .contains("of other revisions than the served ones (2026-07-28)")
        );
        assert_eq!(warned("initialize", Revisions::ALL), "");
    }
}
