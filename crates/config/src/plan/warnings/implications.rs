//! Implied scopes that nothing requires, misspelled ones that imply others, and scopes that every
//! token has.

use portcullis_metadata::Scopes;

use crate::{
    Config,
    file::{Authorization, Resource},
    plan::ResourcePlan,
    similar::intended_scope,
    toml_text,
};

/// Adds a warning for each scope in `scope_implies` that is neither supported nor required, and
/// implies no other. `needed` are the lists of required scopes.
pub(super) fn warn(
    resource: &Resource,
    needed: &[(String, &Scopes)],
    key: &str,
    warnings: &mut Vec<String>,
) {
    let supported = &resource.scopes_supported;
    // Without the list, the upstream can require scopes that are nowhere in the configuration.
    if supported.is_empty() {
        return;
    }
    let required = needed.iter().flat_map(|(_, scopes)| scopes.iter());
    let broad = resource.scope_implies.keys().map(String::as_str);
    let known: Vec<&str> = supported
        .iter()
        .map(String::as_str)
        .chain(required)
        .chain(broad)
        .collect();
    for (broad, narrow) in &resource.scope_implies {
        for scope in narrow
            .iter()
            .filter(|scope| !known.contains(&scope.as_str()))
        {
            warnings.push(format!(
                "{key}.scope_implies has {scope:?} for {broad:?}, and it is neither required nor in scopes_supported, so that it \
                 has no effect; correct or remove it{}",
                intended_scope(scope, &known)
            ));
        }
    }
}

/// Adds a warning for each scope that implies others, that nothing else names, and that is a
/// misspelling of a known one.
///
/// Tokens can have other scopes that only `scope_implies` names: those that no client is to
/// request.
pub(super) fn warn_of_misspelled(
    config: &Config,
    resource: &Resource,
    needed: &[(String, &Scopes)],
    key: &str,
    warnings: &mut Vec<String>,
) {
    let supported = resource.scopes_supported.iter().map(String::as_str);
    let required = needed.iter().flat_map(|(_, scopes)| scopes.iter());
    let granted = config.providers().flat_map(|provider| provider.grant());
    let granted = granted.flat_map(|grant| grant.scopes.iter().map(String::as_str));
    let known: Vec<&str> = supported.chain(required).chain(granted).collect();
    for (broad, narrow) in &resource.scope_implies {
        // A scope can have almost the same name as one that it implies.
        let is_implied = |name: &str| narrow.iter().any(|implied| implied == name);
        let others: Vec<&str> = known
            .iter()
            .copied()
            .filter(|name| !is_implied(name))
            .collect();
        let intended = intended_scope(broad, &others);
        if !known.contains(&broad.as_str()) && !intended.is_empty() {
            warnings.push(format!(
                "{key}.scope_implies has {broad:?}, which is nowhere else in the configuration, so that probably no token has it; \
                 correct or remove it{intended}"
            ));
        }
    }
}

/// Adds a warning for each rule or route that requires scopes of `required_scopes` only.
///
/// A rule about claims or with a limit has an effect all the same.
pub(super) fn warn_of_required(
    resource: &ResourcePlan,
    configured: &Resource,
    key: &str,
    warnings: &mut Vec<String>,
) {
    // Without authorization, no scope has an effect, which is a warning of its own.
    if resource.authorization == Authorization::None {
        return;
    }
    let rules = configured.rule.iter().enumerate();
    let rules = rules
        .filter(|(_, rule)| rule.claims.is_empty() && rule.limit.is_none())
        .map(|(position, rule)| ("rule", position, &rule.scopes));
    let routes = configured.route.iter().enumerate();
    let routes = routes.map(|(position, route)| ("route", position, &route.scopes));
    let is_required = |name: &String| configured.required_scopes.contains(name);
    for (kind, position, scopes) in rules.chain(routes) {
        if !scopes.is_empty() && scopes.iter().all(is_required) {
            warnings.push(format!(
                "{key}.{kind}[{position}].scopes has only scopes of required_scopes, which every token needs, so that the {kind} has no \
                 effect; write a scope that fewer tokens have, such as \"mcp:admin\", or remove the {kind}"
            ));
        }
    }
}

/// Adds a warning for each list of a rule or a route whose scopes all tokens have, because
/// `required_scopes` imply them: the two sides of `scope_implies` are probably reversed.
pub(super) fn warn_of_reversed(
    resource: &ResourcePlan,
    configured: &Resource,
    needed: &[(String, &Scopes)],
    warnings: &mut Vec<String>,
) {
    let required = &resource.required_scopes;
    for (key, scopes) in needed {
        let implied = scopes.difference(required);
        let Some(narrow) = implied.iter().next() else {
            continue;
        };
        if !resource.scope_implications.covers(required, scopes) {
            continue;
        }
        let implies = |narrower: &[String]| narrower.iter().any(|name| name == narrow);
        let mut pairs = configured.scope_implies.iter();
        let Some((broad, _)) = pairs.find(|(_, narrower)| implies(narrower)) else {
            continue;
        };
        warnings.push(format!(
            "{key} has {narrow:?}, which every token with required_scopes has, because {broad:?} counts as it in scope_implies, so that \
             all tokens pass; if {narrow:?} allows more, write scope_implies = {{ {} = [{}] }}, and else remove it here",
            toml_text::string(narrow),
            toml_text::string(broad)
        ));
    }
}
