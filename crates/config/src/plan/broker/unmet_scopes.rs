//! Scopes that a resource requires and no user can get.

use portcullis_broker::BrokerProvider;
use portcullis_metadata::Scopes;

use super::BrokerPlan;
use crate::plan::ResourcePlan;

/// Adds a warning for each resource whose required scopes no provider's `grant` gives to a user.
/// Resources that accept other issuers are not examined.
pub(super) fn warn(plan: &BrokerPlan, resources: &[ResourcePlan], warnings: &mut Vec<String>) {
    let providers = &plan.settings.providers;
    for (position, resource) in resources.iter().enumerate() {
        let has_other_issuers = !resource.accepts_broker || !resource.issuers.is_empty();
        if has_other_issuers || providers.iter().any(|provider| can_use(provider, resource)) {
            continue;
        }
        for (number, provider) in providers.iter().enumerate() {
            let granted = granted(provider);
            let missing: Vec<String> = resource
                .required_scopes
                .iter()
                .filter(|name| {
                    Scopes::from_names([*name])
                        .is_ok_and(|needed| !resource.scope_implications.covers(&granted, &needed))
                })
                .map(|name| format!("{name:?}"))
                .collect();
            warnings.push(format!(
                "broker.provider[{number}].grant gives no user {}, which resource[{position}] with the endpoint {:?} requires of \
                 every request, so that no user can use it; add it to the scopes of an entry of grant, or, for all users, add {{ scopes = [{}] }} \
                 to grant, or correct required_scopes",
                missing.join(" and "),
                resource.endpoint,
                missing.join(", ")
            ));
        }
    }
}

/// Whether a user of the provider can have all scopes that the resource requires. Without `grant`,
/// each user can.
fn can_use(provider: &BrokerProvider, resource: &ResourcePlan) -> bool {
    provider.grants.is_empty()
        || resource
            .scope_implications
            .covers(&granted(provider), &resource.required_scopes)
}

/// Returns the scopes of a user to whom every entry of `grant` applies.
fn granted(provider: &BrokerProvider) -> Scopes {
    provider
        .grants
        .iter()
        .fold(Scopes::empty(), |all, grant| all.union(&grant.scopes))
}
