//! Scopes, claims, routes and rules of a resource.

use std::{collections::BTreeMap, slice};

use crate::{Diagnostics, file};
use anyhow::{Context as _, bail, ensure};
use http::Method;
use portcullis_endpoint::{MessageRule, NameGlob};
use portcullis_guard::authorize::{ClaimRule, ClaimTest, PathGlob, RouteRule, ScopeImplications};
use portcullis_mcp::{Revisions, client_methods};
use portcullis_metadata::Scopes;

use super::claim_domains;

/// Validates `[[resource.route]]`. Without methods, the rule is for all of them.
///
/// Adds an error for each invalid value, and returns `None` if there is one. A method need not be a
/// known one; the warnings of the plan name unknown methods.
pub(super) fn route(route: &file::Route, errors: &mut Diagnostics<'_>) -> Option<RouteRule> {
    let methods = errors.take_all(
        "methods",
        route.methods.iter().map(|method| parse_http_method(method)),
    );
    let path = errors.take(
        "path",
        PathGlob::parse(&route.path).with_context(|| format!("path = {:?}", route.path)),
    );
    let scopes = resource_scopes(&route.scopes, "scopes", errors);
    Some(RouteRule::new(path?, scopes?).methods(methods?))
}

/// Validates `[[resource.rule]]`, apart from its limit.
///
/// Adds an error for each invalid value, and returns `None` if there is one.
pub(super) fn rule(rule: &file::Rule, errors: &mut Diagnostics<'_>) -> Option<MessageRule> {
    let glob =
        |text: &str| NameGlob::parse(text).with_context(|| format!("{text:?} is not a pattern"));
    let method = errors.take(
        "method",
        check_method_pattern(&rule.method).and_then(|()| glob(&rule.method)),
    );
    let requires_something =
        !rule.scopes.is_empty() || !rule.claims.is_empty() || rule.limit.is_some();
    if !requires_something {
        errors.add(
            "",
            format!(
                "the rule for {:?} requires nothing; add scopes, claims or a limit",
                rule.method
            ),
        );
    }
    let name = errors.take("name", rule.name.as_deref().map(glob).transpose());
    let scopes = resource_scopes(&rule.scopes, "scopes", errors);
    let claims = convert_each(&rule.claims, "claims", errors, claim);
    let mut message_rule = MessageRule::for_method(method?);
    message_rule.name = name?;
    message_rule.scopes = scopes?;
    message_rule.claims = claims?;
    requires_something.then_some(message_rule)
}

/// Validates a requirement on a claim. Adds an error and returns `None` if it is invalid.
pub(in crate::plan) fn claim(
    rule: &file::Claim,
    errors: &mut Diagnostics<'_>,
) -> Option<ClaimRule> {
    let domains = rule.domain.iter().flatten().filter(|text| !text.is_empty());
    errors.take_all("domain", domains.map(|domain| claim_domains::check(domain)))?;
    errors.take("", claim_rule(rule))
}

/// Validates `scope_implies`. Adds an error for each name that is not a scope of a resource, and
/// returns `None` if there is one.
pub(super) fn implications(
    implies: &BTreeMap<String, Vec<String>>,
    errors: &mut Diagnostics<'_>,
) -> Option<ScopeImplications> {
    const KEY: &str = "scope_implies";
    let pairs = implies.iter().map(|(broad, narrow)| {
        let broad_scope = resource_scopes(slice::from_ref(broad), KEY, errors);
        let narrow = resource_scopes(narrow, KEY, errors);
        broad_scope
            .and(narrow)
            .map(|narrow| (broad.as_str(), narrow))
    });
    let pairs: Vec<Option<_>> = pairs.collect();
    errors.take(
        KEY,
        ScopeImplications::new(pairs.into_iter().collect::<Option<Vec<_>>>()?),
    )
}

/// Parses the scopes that `key` lists: those that a resource requires or publishes.
///
/// Adds an error for each name that is not a scope or is `offline_access`, and returns `None` if
/// there is one.
pub(in crate::plan) fn resource_scopes(
    names: &[String],
    key: &str,
    errors: &mut Diagnostics<'_>,
) -> Option<Scopes> {
    let scopes = errors.take_all(key, names.iter().map(|name| scope(name)))?;
    Some(
        scopes
            .iter()
            .fold(Scopes::empty(), |all, scope| all.union(scope)),
    )
}

/// Converts each entry of the list `key`. Returns `None` if `convert` returns `None` for one.
pub(in crate::plan) fn convert_each<T, U>(
    entries: &[T],
    key: &str,
    errors: &mut Diagnostics<'_>,
    convert: impl Fn(&T, &mut Diagnostics<'_>) -> Option<U>,
) -> Option<Vec<U>> {
    let converted = entries
        .iter()
        .enumerate()
        .map(|(position, entry)| convert(entry, &mut errors.table(&format!("{key}[{position}]"))));
    // All entries are converted before the first `None` ends the second collection, so that all
    // errors are found.
    let converted: Vec<Option<U>> = converted.collect();
    converted.into_iter().collect()
}

fn parse_http_method(method: &str) -> anyhow::Result<Method> {
    if let Ok(parsed) = method.parse() {
        return Ok(parsed);
    }
    let is_of_mcp =
        |glob: NameGlob| client_methods(Revisions::ALL).any(|known| glob.matches(known));
    if NameGlob::parse(method).is_ok_and(is_of_mcp) {
        bail!(
            "methods has {method:?}, which is a method of MCP; write [[resource.rule]] with method = {method:?}, or HTTP methods \
             such as \"DELETE\""
        );
    }
    let names: Vec<&str> = method
        .split(|c: char| ",;| ".contains(c))
        .filter(|name| !name.is_empty())
        .collect();
    let fix = match names[..] {
        [_, _, ..] if names.iter().all(|name| name.parse::<Method>().is_ok()) => {
            format!("write each in a string of its own: methods = {names:?}")
        }
        _ => "write one such as \"DELETE\"".to_owned(),
    };
    bail!("methods has {method:?}, which is not an HTTP method; {fix}")
}

fn scope(name: &str) -> anyhow::Result<Scopes> {
    ensure!(
        name != "offline_access",
        "`offline_access` is not a scope of a resource, but requests a refresh token; remove it"
    );
    let fix = if name.contains(' ') {
        "write one scope in each string"
    } else {
        "correct it"
    };
    Scopes::from_names([name]).with_context(|| format!("{name:?} is not a scope; {fix}"))
}

/// Rejects a pattern with characters that are special in other pattern languages and that no method
/// has.
fn check_method_pattern(pattern: &str) -> anyhow::Result<()> {
    let is_strange = |character: char| {
        "[]{}()?|\\".contains(character) || character.is_whitespace() || character.is_control()
    };
    if let Some(character) = pattern.chars().find(|character| is_strange(*character)) {
        bail!(
            "method = {pattern:?} has {character:?}, which occurs in no method and has no meaning in a pattern; write one \
             method or a pattern with `*`, and another rule for each further method"
        );
    }
    Ok(())
}

fn claim_rule(rule: &file::Claim) -> anyhow::Result<ClaimRule> {
    let test = match (&rule.one_of, &rule.domain) {
        (None, None) => ClaimTest::Present,
        (Some(values), None) => ClaimTest::OneOf(values.clone()),
        (None, Some(domains)) => ClaimTest::Domain(domains.clone()),
        (Some(_), Some(_)) => {
            bail!("one_of and domain are both set; write two rules to require both")
        }
    };
    for (key, values) in [("one_of", &rule.one_of), ("domain", &rule.domain)] {
        let Some(values) = values else { continue };
        ensure!(
            !values.is_empty(),
            "{key} = [] matches no value; list the accepted values, such as {key} = [\"example.com\"]"
        );
        ensure!(
            values.iter().all(|value| !value.is_empty()),
            "{key} has an empty value, which no claim has; remove it"
        );
    }
    let wanted =
        ClaimRule::new(&rule.claim, test).with_context(|| format!("claim = {:?}", rule.claim))?;
    Ok(if rule.report_only {
        wanted.report_only()
    } else {
        wanted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Diagnostic, KeyPath};

    fn texts(errors: Vec<Diagnostic>) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// Asserts that there is one error for each of these beginnings, about the key of the resource.
    fn assert_errors<T>(
        key: &str,
        expected: &[&str],
        validate: impl FnOnce(&mut Diagnostics<'_>) -> Option<T>,
    ) {
        let errors = Diagnostics::collect(|errors| validate(&mut errors.table("resource[0]")))
            .err()
            .unwrap();
        let key = KeyPath::parse(&format!("resource[0].{key}"));
        assert!(errors.iter().all(|error| error.key == key), "{errors:#?}");
        let errors = texts(errors);
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.starts_with(&format!("{key}: {expected}")), "{error}");
        }
    }

    /// B7, B9: each name that is not a scope of a resource has an error with its key, on both sides
    /// of `scope_implies`.
    #[test]
    fn every_invalid_scope_is_named() {
        let wrong = names(&["a", "b c", "offline_access", ""]);
        let expected = [
            "\"b c\" is not a scope",
            "`offline_access` is not a scope",
            "\"\" is not a scope",
        ];
        for key in ["required_scopes", "scopes_supported"] {
            assert_errors(key, &expected, |errors| {
                resource_scopes(&wrong, key, errors)
            });
        }
        for (implies, expected) in [
            (
                ("a", names(&["offline_access"])),
                &["`offline_access` is not a scope of a resource"][..],
            ),
            (
                ("offline_access", names(&["a"])),
                &["`offline_access` is not a scope of a resource"],
            ),
            (
                ("b c", names(&["a", "d e"])),
                &["\"b c\" is not a scope", "\"d e\" is not a scope"],
            ),
        ] {
            let implies = BTreeMap::from([(implies.0.to_owned(), implies.1)]);
            assert_errors("scope_implies", expected, |errors| {
                implications(&implies, errors)
            });
        }
    }

    /// B9: each method of a route that is none has an error. Without methods, a route is for all of
    /// them.
    #[test]
    fn every_invalid_method_of_a_route_is_named() {
        let mut configured = file::Route {
            methods: names(&["a b", "GET", ""]),
            path: "/a".to_owned(),
            scopes: vec![],
        };
        let expected = [
            "resource[0].route[0].methods has \"a b\"",
            "resource[0].route[0].methods has \"\"",
        ];
        let errors = Diagnostics::collect(|errors| {
            route(&configured, &mut errors.table("resource[0].route[0]"))
        });
        let errors = texts(errors.err().unwrap());
        assert!(
            errors.len() == 2
                && errors
                    .iter()
                    .zip(expected)
                    .all(|(error, start)| error.starts_with(start)),
            "{errors:?}"
        );
        configured.methods = names(&["PURGE"]);
        assert!(
            Diagnostics::collect(|errors| route(&configured, errors)).is_ok(),
            "an unknown method"
        );
        configured.methods.clear();
        let every = Diagnostics::collect(|errors| route(&configured, errors)).unwrap();
        assert!(every.methods.is_empty(), "{every:?}");
    }

    /// B9: characters of other pattern languages are rejected, and each names its fix.
    #[test]
    fn method_patterns_have_stars_only() {
        for pattern in [
            "tools/call",
            "tools/*",
            "*",
            "notifications/tools/list_changed",
            "x-vendor.method",
            "größe",
        ] {
            assert!(check_method_pattern(pattern).is_ok(), "{pattern}");
        }
        for character in [
            '[', ']', '{', '}', '(', ')', '?', '|', '\\', ' ', '\t', '\u{a0}', '\0',
        ] {
            let error = check_method_pattern(&format!("tools/{character}call"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("has {character:?}")), "{error}");
            assert!(error.contains("; write one method"), "{error}");
        }
    }

    /// C14: the test of a claim follows from the keys that are set.
    #[test]
    fn claim_rules_follow_from_their_keys() {
        let values = || Some(names(&["x.example"]));
        let of = |claim: &str, one_of, domain, report_only| {
            claim_rule(&file::Claim {
                claim: claim.to_owned(),
                one_of,
                domain,
                report_only,
            })
        };
        let rule = |test| ClaimRule::new("a", test).unwrap();
        assert_eq!(
            of("a", None, None, false).unwrap(),
            rule(ClaimTest::Present)
        );
        assert_eq!(
            of("a", None, None, true).unwrap(),
            rule(ClaimTest::Present).report_only()
        );
        assert_eq!(
            of("a", values(), None, false).unwrap(),
            rule(ClaimTest::OneOf(values().unwrap()))
        );
        assert_eq!(
            of("a", None, values(), false).unwrap(),
            rule(ClaimTest::Domain(values().unwrap()))
        );
        let both = of("a", values(), values(), false).unwrap_err().to_string();
        assert!(both.contains("write two rules"), "{both}");
        let unnamed = format!("{:#}", of("", None, None, false).unwrap_err());
        assert!(unnamed.starts_with("claim = \"\": "), "{unnamed}");
    }
}
