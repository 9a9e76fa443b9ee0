//! Warnings about brokers that run but should change.

use super::{
    BrokerPlan, client_ids, uncertain_claims, unmapped_claims, unmet_rules, unmet_scopes,
    wide_rules,
};
use crate::{Config, Diagnostic, KeyPath, file::Broker, plan::ResourcePlan};

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
        uncertain_claims::warn(provider, &key, &mut warnings);
        unmet_rules::warn(provider, &key, &mut warnings);
        wide_rules::warn(provider, &key, &mut warnings);
        warnings.extend(client_ids::warning(provider, &key));
    }
    unmet_scopes::warn(plan, resources, &mut warnings);
    uncertain_claims::warn_of_resources(config, broker, resources, &mut warnings);
    unmapped_claims::warn(config, broker, resources, &mut warnings);
    warnings
        .iter()
        .map(|text| Diagnostic::new(&KeyPath::default(), text))
        .collect()
}
