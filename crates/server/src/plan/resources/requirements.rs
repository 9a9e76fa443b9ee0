//! Scopes, claims, routes and rules of a resource.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use http::Method;
use portcullis_endpoint::{MessageRule, NameGlob};
use portcullis_guard::{ClaimRule, ClaimTest, PathGlob, RouteRule, ScopeImplications};
use portcullis_metadata::Scopes;

use crate::config::{self, Diagnostics};

/// Converts each entry of the list `key`, so that all errors are found. Returns `None` if one is invalid.
pub(super) fn all<T, U>(
    entries: &[T],
    key: &str,
    errors: &mut Diagnostics<'_>,
    convert: impl Fn(&T, &mut Diagnostics<'_>) -> Option<U>,
) -> Option<Vec<U>> {
    let converted = entries
        .iter()
        .enumerate()
        .map(|(position, entry)| convert(entry, &mut errors.table(&format!("{key}[{position}]"))));
    converted.collect::<Vec<_>>().into_iter().collect()
}

/// Checks the listed scopes as the guard does, so that the error has a key.
pub(super) fn check_supported_scopes(names: &[String], errors: &mut Diagnostics<'_>) {
    if let Err(error) = required(names) {
        errors.add("scopes_supported", format!("{error:#}"));
    }
}

/// Parses scopes that a resource requires or lists.
///
/// # Errors
/// Fails when a name is not a scope, or is `offline_access`.
pub(super) fn required(names: &[String]) -> anyhow::Result<Scopes> {
    ensure!(
        names.iter().all(|name| name != "offline_access"),
        "`offline_access` is not a scope of a resource, but requests a refresh token; remove it"
    );
    scopes(names)
}

fn scopes(names: &[String]) -> anyhow::Result<Scopes> {
    let mut all = Scopes::empty();
    for name in names {
        let fix = if name.contains(' ') { "write one scope in each string" } else { "correct it" };
        let parsed = Scopes::from_names([name.as_str()]).with_context(|| format!("{name:?} is not a scope; {fix}"))?;
        all = all.union(&parsed);
    }
    Ok(all)
}

/// Validates `[[resource.route]]`. Adds an error for each invalid value, and returns `None` if there is one.
pub(super) fn route(route: &config::Route, errors: &mut Diagnostics<'_>) -> Option<RouteRule> {
    let methods = route.methods.iter().map(|method| {
        let parsed = method.parse::<Method>();
        parsed.with_context(|| format!("methods has {method:?}, which is not an HTTP method; write it as \"DELETE\""))
    });
    let methods = errors.take("methods", methods.collect::<Result<Vec<_>, _>>());
    let path = errors.take("path", PathGlob::parse(&route.path).with_context(|| format!("path = {:?}", route.path)));
    let scopes = errors.take("scopes", required(&route.scopes));
    Some(RouteRule::new(path?, scopes?).methods(methods?))
}

/// Validates `[[resource.rule]]`, apart from its limit. Adds an error for each invalid value, and returns `None` if there is
/// one that the rule cannot do without.
pub(super) fn rule(rule: &config::Rule, errors: &mut Diagnostics<'_>) -> Option<MessageRule> {
    let glob = |text: &str| NameGlob::parse(text).with_context(|| format!("{text:?} is not a pattern"));
    let method = errors.take("method", check_method_pattern(&rule.method).and_then(|()| glob(&rule.method)));
    if rule.scopes.is_empty() && rule.claims.is_empty() && rule.limit.is_none() {
        errors.add("", format!("the rule for {:?} requires nothing; add scopes, claims or a limit", rule.method));
    }
    let name = errors.take("name", rule.name.as_deref().map(glob).transpose());
    let scopes = errors.take("scopes", required(&rule.scopes));
    let claims = all(&rule.claims, "claims", errors, claim);
    let mut message_rule = MessageRule::for_method(method?);
    message_rule.name = name?;
    message_rule.scopes = scopes?;
    message_rule.claims = claims?;
    Some(message_rule)
}

/// Rejects a pattern with characters that are special in other pattern languages and that no method has.
fn check_method_pattern(pattern: &str) -> anyhow::Result<()> {
    let is_strange =
        |character: char| "[]{}()?|\\".contains(character) || character.is_whitespace() || character.is_control();
    if let Some(character) = pattern.chars().find(|character| is_strange(*character)) {
        bail!(
            "method = {pattern:?} has {character:?}, which occurs in no method and has no meaning in a pattern; write one \
             method or a pattern with `*`, and another rule for each further method"
        );
    }
    Ok(())
}

/// Validates `scope_implies`.
///
/// # Errors
/// Fails when a name is not a scope.
pub(super) fn implications(implies: &BTreeMap<String, Vec<String>>) -> anyhow::Result<ScopeImplications> {
    let pairs = implies.iter().map(|(broad, narrow)| Ok((broad.as_str(), scopes(narrow)?)));
    Ok(ScopeImplications::new(pairs.collect::<anyhow::Result<Vec<_>>>()?)?)
}

/// Validates a requirement on a claim. Adds an error and returns `None` if it is invalid.
pub(super) fn claim(rule: &config::Claim, errors: &mut Diagnostics<'_>) -> Option<ClaimRule> {
    errors.take("", claim_rule(rule))
}

fn claim_rule(rule: &config::Claim) -> anyhow::Result<ClaimRule> {
    let test = match (&rule.one_of, &rule.domain) {
        (None, None) => ClaimTest::Present,
        (Some(values), None) => ClaimTest::OneOf(values.clone()),
        (None, Some(domains)) => ClaimTest::Domain(domains.clone()),
        (Some(_), Some(_)) => bail!("one_of and domain are both set; write two rules to require both"),
    };
    let wanted = ClaimRule::new(&rule.claim, test).with_context(|| format!("claim = {:?}", rule.claim))?;
    Ok(if rule.report_only { wanted.report_only() } else { wanted })
}
