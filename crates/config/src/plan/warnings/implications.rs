//! Implied scopes that nothing requires.

use portcullis_metadata::Scopes;

use crate::{file::Resource, similar::intended_scope};

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
