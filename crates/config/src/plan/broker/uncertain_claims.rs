//! Rules about claims that do not identify a user or an organization for certain.

use portcullis_identity_provider::ProviderKind;

use super::{
    provider_rules::{ProviderRule, provider_rules},
    unmapped_claims::{first_name, required_claims},
};
use crate::{
    Config,
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

/// Why a claim of a provider is not certain.
struct Doubt {
    problem: &'static str,
    fix: &'static str,
}

/// Adds a warning for each rule of the provider about such a claim.
pub(super) fn warn(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    for ProviderRule { key, claim, .. } in provider_rules(provider, key) {
        if let Some(Doubt { problem, fix }) = doubt(provider, claim) {
            warnings.push(format!(
                "{key}.claim = {claim:?} decides by a claim that is not certain: {problem}; {fix}"
            ));
        }
    }
}

/// Adds a warning for each requirement of a resource about a claim of the broker's tokens that has
/// the value of such a claim.
pub(super) fn warn_of_resources(
    config: &Config,
    broker: &Broker,
    resources: &[ResourcePlan],
    warnings: &mut Vec<String>,
) {
    let resources = config.resource.iter().zip(resources).enumerate();
    for (position, (resource, _)) in resources.filter(|(_, (_, plan))| plan.accepts_broker) {
        for (key, claim) in required_claims(resource) {
            let of_provider = broker.claims.get(&*first_name(claim));
            let found = of_provider.and_then(|of_provider| {
                let mut providers = broker.provider.iter().enumerate();
                providers.find_map(|(number, provider)| {
                    Some((number, of_provider, doubt(provider, of_provider)?))
                })
            });
            if let Some((number, of_provider, Doubt { problem, fix })) = found {
                warnings.push(format!(
                    "resource[{position}].{key} = {claim:?} decides by {of_provider:?} of broker.provider[{number}], which is not \
                     certain: {problem}; write the requirement as allow of the provider, where you can {fix}"
                ));
            }
        }
    }
}

/// Returns why a claim of a provider is not certain. `None` if it is, or if that depends on how the
/// provider is set up.
fn doubt(provider: &BrokerProvider, claim: &str) -> Option<Doubt> {
    let name = first_name(claim);
    let kind = ProviderKind::from(provider.kind);
    if kind == ProviderKind::GitHub && name == "orgs" {
        return Some(Doubt {
            problem: "organizations can change their names, and others can take them then",
            fix: "use \"org_ids\"",
        });
    }
    let of_kind = match kind {
        ProviderKind::Entra => Doubt {
            problem: "administrators of any tenant can set it for their users and guests",
            fix: "use \"groups\", \"roles\" or \"oid\"",
        },
        ProviderKind::Google => Doubt {
            problem: "a Google account can be created with an address of another domain, and keeps it",
            fix: "use \"hd\" for a domain, and \"sub\" for a person",
        },
        ProviderKind::GitHub => Doubt {
            problem: "users can change it, and others can take it then",
            fix: "use \"id\" for a person",
        },
        _ => return None,
    };
    MUTABLE.contains(&&*name).then_some(of_kind)
}
