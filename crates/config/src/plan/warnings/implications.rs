//! Implied scopes that nothing requires, and those that every token has.

use portcullis_metadata::Scopes;

use crate::{file::Resource, plan::ResourcePlan, similar::intended_scope, toml_text};

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
