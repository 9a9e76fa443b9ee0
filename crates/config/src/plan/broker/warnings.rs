//! Warnings about brokers that run but should change.

use portcullis_identity_provider::ProviderKind;

use super::{
    BrokerPlan, client_ids,
    unmapped_claims::{self, first_name},
    unmet_rules, unmet_scopes, wide_rules,
};
use crate::{
    Config, Diagnostic, KeyPath,
    file::{Broker, BrokerProvider},
    plan::ResourcePlan,
};

/// Claims that users or administrators of other organizations can set.
const MUTABLE: &[&str] = &[
    "email",
    "preferred_username",
    "upn",
    "unique_name",
    "login",
    "name",
];

/// Returns warnings about the broker. `resources` are the plans of all resources. `is_kept` is
/// whether the broker's records outlive the process.
pub(in crate::plan) fn warnings(
    config: &Config,
    broker: &Broker,
    plan: &BrokerPlan,
    resources: &[ResourcePlan],
    is_kept: bool,
) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    if !is_kept {
        warnings.push(
            "broker keeps sign-ins and registered clients in memory only, because there is no state directory: all of them \
             end with the process, and every user must sign in again; set state_dir to a directory"
                .to_owned(),
        );
    }
    for (position, provider) in broker.provider.iter().enumerate() {
        let key = format!("broker.provider[{position}]");
        warn_of_mutable_claims(provider, &key, &mut warnings);
        unmet_rules::warn(provider, &key, &mut warnings);
        wide_rules::warn(provider, &key, &mut warnings);
        warnings.extend(client_ids::warning(provider, &key));
    }
    unmet_scopes::warn(plan, resources, &mut warnings);
    unmapped_claims::warn(config, broker, resources, &mut warnings);
    warnings
        .iter()
        .map(|text| Diagnostic::new(&KeyPath::default(), text))
        .collect()
}

/// Warns of rules about claims that do not identify a user or an organization for certain.
fn warn_of_mutable_claims(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    let kind = ProviderKind::from(provider.kind);
    let (problem, fix) = match kind {
        ProviderKind::Entra => (
            "administrators of any tenant can set it for their users and guests",
            "use \"groups\", \"roles\" or \"oid\"",
        ),
        ProviderKind::Google => (
            "a Google account can be created with an address of another domain, and keeps it",
            "use \"hd\" for a domain, and \"sub\" for a person",
        ),
        ProviderKind::GitHub => (
            "users can change it, and others can take it then",
            "use \"id\" for a person",
        ),
        _ => return,
    };
    let allow = provider
        .allow()
        .iter()
        .enumerate()
        .map(|(number, rule)| (format!("allow[{number}]"), rule.claim.as_str()));
    let grants = provider
        .grant()
        .iter()
        .enumerate()
        .filter_map(|(number, grant)| Some((format!("grant[{number}]"), grant.claim.as_deref()?)));
    for (rule, claim) in allow.chain(grants) {
        let name = first_name(claim);
        let (problem, fix) = match (kind, &*name) {
            (ProviderKind::GitHub, "orgs") => (
                "organizations can change their names, and others can take them then",
                "use \"org_ids\"",
            ),
            _ if MUTABLE.contains(&&*name) => (problem, fix),
            _ => continue,
        };
        warnings.push(format!(
            "{key}.{rule}.claim = {claim:?} decides by a claim that is not certain: {problem}; {fix}"
        ));
    }
}
