//! Warnings about brokers that run but should change.

use portcullis_identity_provider::ProviderKind;

use super::{provider_issuer::GOOGLE, unmet_rules};
use crate::{
    Diagnostic, KeyPath,
    file::{Broker, BrokerProvider},
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

/// The end of the identifiers of OAuth clients at Google.
const GOOGLE_CLIENT: &str = ".apps.googleusercontent.com";

/// Returns warnings about the broker. `is_kept` is whether its records outlive the process.
pub(in crate::plan) fn warnings(broker: &Broker, is_kept: bool) -> Vec<Diagnostic> {
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
        warn_of_client_id(provider, &key, &mut warnings);
    }
    warnings
        .iter()
        .map(|text| Diagnostic::new(&KeyPath::default(), text))
        .collect()
}

/// Warns of rules about claims that do not identify a user or an organization for certain.
fn warn_of_mutable_claims(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    let (problem, fix) = match ProviderKind::from(provider.kind) {
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
        .allow
        .iter()
        .enumerate()
        .map(|(number, rule)| (format!("allow[{number}]"), rule.claim.as_str()));
    let grants = provider
        .grant
        .iter()
        .enumerate()
        .filter_map(|(number, grant)| Some((format!("grant[{number}]"), grant.claim.as_deref()?)));
    for (rule, claim) in allow
        .chain(grants)
        .filter(|(_, claim)| MUTABLE.contains(claim))
    {
        warnings.push(format!(
            "{key}.{rule}.claim = {claim:?} decides by a claim that is not certain: {problem}; {fix}"
        ));
    }
}

/// Warns of an identifier that no OAuth client at Google has. An imitation on loopback, which has
/// `issuer`, has others.
fn warn_of_client_id(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    let is_of_google = ProviderKind::from(provider.kind) == ProviderKind::Google
        && provider
            .issuer
            .as_deref()
            .is_none_or(|issuer| issuer == GOOGLE);
    if is_of_google && !provider.client_id.ends_with(GOOGLE_CLIENT) {
        warnings.push(format!(
            "{key}.client_id = {:?} does not end in {GOOGLE_CLIENT}, as that of each OAuth client at Google does; write the \
             client ID that the Google Cloud console shows, such as \"1234567890-example{GOOGLE_CLIENT}\"",
            provider.client_id
        ));
    }
}
