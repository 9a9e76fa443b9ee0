//! [`ProviderRule`]: the conditions of `allow` and `grant` of a provider.

use crate::file::BrokerProvider;

/// A condition about a claim of the provider.
pub(in crate::plan) struct ProviderRule<'a> {
    /// Its key, such as `broker.provider[0].allow[1]`.
    pub(in crate::plan) key: String,
    /// Whether it is one of `grant`, and not of `allow`.
    pub(super) is_grant: bool,
    pub(in crate::plan) claim: &'a str,
    pub(super) one_of: Option<&'a [String]>,
    pub(super) has_domain: bool,
}

/// Returns the conditions of a provider, whose key is `key`: those of `allow`, then those of
/// `grant`, of which entries for all users have none.
pub(in crate::plan) fn provider_rules<'a>(
    provider: &'a BrokerProvider,
    key: &str,
) -> impl Iterator<Item = ProviderRule<'a>> {
    let allow = provider.allow().iter().enumerate();
    let allow = allow.map(move |(number, rule)| ProviderRule {
        key: format!("{key}.allow[{number}]"),
        is_grant: false,
        claim: &rule.claim,
        one_of: rule.one_of.as_deref(),
        has_domain: rule.domain.is_some(),
    });
    let grants = provider.grant().iter().enumerate();
    let grants = grants.filter_map(move |(number, rule)| {
        Some(ProviderRule {
            key: format!("{key}.grant[{number}]"),
            is_grant: true,
            claim: rule.claim.as_deref()?,
            one_of: rule.one_of.as_deref(),
            has_domain: rule.domain.is_some(),
        })
    });
    allow.chain(grants)
}
