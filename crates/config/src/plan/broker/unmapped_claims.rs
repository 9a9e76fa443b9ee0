//! Claims that resources read, and the broker's tokens do not have.

use std::borrow::Cow;

use super::claims;
use crate::{
    Config,
    file::{Broker, Resource},
    plan::ResourcePlan,
    toml_text,
};

/// The claims that the broker writes itself.
const OWN: &[&str] = &[
    "aud",
    "auth_time",
    "client_id",
    "exp",
    "iat",
    "iss",
    "jti",
    "scope",
    "sid",
    "sub",
];

/// Adds warnings about claims that only tokens of other issuers could have, at resources that
/// accept none.
pub(super) fn warn(
    config: &Config,
    broker: &Broker,
    resources: &[ResourcePlan],
    warnings: &mut Vec<String>,
) {
    for (position, (resource, plan)) in config.resource.iter().zip(resources).enumerate() {
        if !plan.accepts_broker || !plan.issuers.is_empty() {
            continue;
        }
        for (key, claim, effect) in claims_of(resource) {
            let name = first_name(claim);
            if OWN.contains(&&*name) || broker.claims.contains_key(&*name) {
                continue;
            }
            let fix = if claims::is_reserved(&name) {
                "remove it".to_owned()
            } else {
                let name = toml_text::string(&name);
                format!(
                    "write claims = {{ {name} = {name} }} in [broker], if the provider has this claim"
                )
            };
            warnings.push(format!(
                "resource[{position}].{key} {claim:?}, and the tokens of the [broker] have no claim {name:?}, so that {effect}; {fix}"
            ));
        }
    }
}

/// Returns the claims that a resource reads: each with its key and a verb, and what happens without
/// it.
fn claims_of(resource: &Resource) -> Vec<(String, &str, &'static str)> {
    let headers = resource.identity_headers.iter().flatten();
    let headers = headers.map(|(header, claim)| {
        let key = format!("identity_headers has {header:?} =");
        (key, claim.as_str(), "the header is never sent")
    });
    let required = required_claims(resource);
    let required =
        required.map(|(key, claim)| (format!("{key} ="), claim, "no token meets the rule"));
    headers.chain(required).collect()
}

/// Returns the claims that a resource requires, each with its key.
pub(super) fn required_claims(resource: &Resource) -> impl Iterator<Item = (String, &str)> {
    let claims = resource.claim.iter().enumerate();
    let claims =
        claims.map(|(number, rule)| (format!("claim[{number}].claim"), rule.claim.as_str()));
    let rules = resource.rule.iter().enumerate();
    let of_rules = rules.flat_map(|(rule, required)| {
        let claims = required.claims.iter().enumerate();
        claims.map(move |(number, claim)| {
            let key = format!("rule[{rule}].claims[{number}].claim");
            (key, claim.claim.as_str())
        })
    });
    claims.chain(of_rules)
}

/// Returns the name of the claim, or the first one in a JSON pointer (RFC 6901).
pub(super) fn first_name(claim: &str) -> Cow<'_, str> {
    let Some(pointer) = claim.strip_prefix('/') else {
        return claim.into();
    };
    let name = pointer.split('/').next().unwrap_or_default();
    name.replace("~1", "/").replace("~0", "~").into()
}

/// Returns the name of the claim that a requirement reads, also if it is written as a JSON pointer
/// to the claim itself, such as `/email`. A pointer into a claim stays.
pub(in crate::plan) fn plain_name(claim: &str) -> Cow<'_, str> {
    match claim.strip_prefix('/') {
        Some(name) if !name.contains('/') => first_name(claim),
        _ => claim.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: the name in a JSON pointer is decoded.
    #[test]
    fn pointers_are_decoded() {
        for (claim, name) in [
            ("groups", "groups"),
            ("a~1b", "a~1b"),
            ("/realm_access/roles", "realm_access"),
            (
                "/https:~1~1example.com~1roles/0",
                "https://example.com/roles",
            ),
            ("/a~01", "a~1"),
        ] {
            assert_eq!(first_name(claim), name, "{claim}");
        }
        for (claim, name) in [
            ("email", "email"),
            ("/email", "email"),
            ("/a~1b", "a/b"),
            ("/realm_access/roles", "/realm_access/roles"),
        ] {
            assert_eq!(plain_name(claim), name, "{claim}");
        }
    }
}
