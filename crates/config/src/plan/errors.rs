//! All errors of a configuration that has values of the wrong type.

use super::Plan;
use crate::{ConfigErrors, Diagnostic, KeyPath, Segment, Unusable, is_known};

/// The errors with their places: wrong types, and the problems of the values whose types are
/// correct.
pub fn all_errors(unusable: Unusable) -> ConfigErrors {
    match unusable {
        Unusable::File(errors) => errors,
        Unusable::Values {
            places,
            mut errors,
            repaired,
            replaced,
        } => {
            let of_plan = repaired
                .and_then(|config| Plan::new(&config).err())
                .unwrap_or_default();
            let of_plan: Vec<_> = of_plan
                .into_iter()
                .filter(|found| !follows(found, &replaced))
                .collect();
            errors.extend(of_plan);
            ConfigErrors(places.locate(errors))
        }
    }
}

/// Whether an error may exist only because a value was replaced, or because a table has the wrong
/// name.
fn follows(found: &Diagnostic, replaced: &[KeyPath]) -> bool {
    let key = &found.key;
    if replaced
        .iter()
        .any(|replaced| key.starts_with(replaced) || replaced.starts_with(key))
    {
        return true;
    }
    let has_error_in = |name: &str| {
        replaced
            .iter()
            .any(|replaced| replaced.starts_with(&KeyPath::parse(name)))
    };
    let has_unknown_table = replaced
        .iter()
        .any(|replaced| replaced.segments().len() == 1 && !is_known(replaced));
    match key.segments() {
        [Segment::Name(table)] if table == "tls" => has_error_in("base_url"),
        [Segment::Name(table)] if table == "resource" => has_unknown_table,
        // The issuers of a resource are compared with all issuers.
        [Segment::Name(table), Segment::Index(_)] if table == "resource" => {
            has_unknown_table || has_error_in("issuer") || has_error_in("broker")
        }
        [.., Segment::Name(name)] if name == "issuers" => {
            has_unknown_table || has_error_in("issuer") || has_error_in("broker")
        }
        // The kind decides which other keys a provider needs.
        [
            Segment::Name(broker),
            Segment::Name(provider),
            Segment::Index(position),
            ..,
        ] if broker == "broker"
            && provider == "provider"
            && has_error_in(&format!("broker.provider[{position}]")) =>
        {
            true
        }
        // The broker's scopes and resources are those of the resources.
        [Segment::Name(table), ..] if table == "broker" => {
            has_unknown_table || has_error_in("resource") || has_error_in("base_url")
        }
        _ => false,
    }
}
