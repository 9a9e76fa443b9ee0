//! All errors of a configuration that has values of the wrong type.

use super::Plan;
use crate::{ConfigErrors, Diagnostic, KeyPath, Segment, Unusable, is_known};

/// The keys of the broker that name endpoints and scopes of resources.
const OF_RESOURCES: [&str; 4] = [
    "default_resource",
    "resource",
    "scope_descriptions",
    "scopes",
];

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
    // It compares its key with the replaced one, and names that: "set audit.rotate_size".
    let names = |replaced: &KeyPath| {
        let mut words = found.text.split([' ', ',', ';', ':']).skip(1);
        // The name of a key at the top can be a word of the text.
        replaced.segments().len() > 1 && words.any(|word| word == replaced.to_string())
    };
    if replaced.iter().any(names) {
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
        // These are compared with the resources.
        [Segment::Name(broker)] if broker == "broker" => {
            has_unknown_table || has_error_in("resource")
        }
        [Segment::Name(broker), .., Segment::Name(name)]
            if broker == "broker" && OF_RESOURCES.contains(&name.as_str()) =>
        {
            has_unknown_table || has_error_in("resource")
        }
        _ => false,
    }
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
mod tests {
    use std::path::Path;

    use figment::Jail;

    use crate::{Overrides, check};

    /// J9: an error that exists only because of another one is not reported, others are.
    #[test]
    fn errors_that_follow_are_not_reported() {
        Jail::expect_with(|jail| {
            jail.clear_env();
            jail.set_env("HOME", "/nonexistent");
            for (broker, resource, expected) in [
                // The provider is replaced by one of another kind.
                (
                    "recheck = \"1s\"",
                    "",
                    "4 broker.recheck|7 broker.provider[0].kind",
                ),
                // Without the list, the resource has no scope.
                (
                    "scope_descriptions = { a = \"A\" }\nrefresh_reuse = \"2h\"",
                    "scopes_supported = \"a\"",
                    "5 broker.refresh_reuse|8 broker.provider[0].kind|15 resource[0].scopes_supported",
                ),
                // Without the size, no file is rotated.
                (
                    "[audit]\ntarget = \"stdout\"\nrotate_size = \"100MB\"\nkeep = 5",
                    "",
                    "6 audit.rotate_size|10 broker.provider[0].kind",
                ),
                // Without the broker, the resource has no issuer.
                (
                    "clients = 7",
                    "",
                    "4 broker.clients|7 broker.provider[0].kind",
                ),
            ] {
                let text = format!(
                    "base_url = \"https://mcp.example.com\"\n\n[broker]\n{broker}\n\n\
                     [[broker.provider]]\nkind = \"azure\"\ntenant = \"x\"\nclient_id = \"x\"\n\
                     client_secret = {{ file = \"portcullis.toml\" }}\n\n[[resource]]\nendpoint = \"/mcp\"\n\
                     {resource}\nupstream = {{ http = \"http://127.0.0.1:1\" }}"
                );
                jail.create_file("portcullis.toml", &text)?;
                let errors = check(Path::new("portcullis.toml"), Overrides::default());
                let lines: Vec<String> = errors
                    .err()
                    .unwrap()
                    .0
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let places: Vec<String> = lines
                    .iter()
                    .map(|line| {
                        let mut words = line.split(' ');
                        let place = words.next().unwrap().trim_end_matches(':');
                        let line = place.rsplit(':').next().unwrap();
                        format!("{line} {}", words.next().unwrap().trim_end_matches(':'))
                    })
                    .collect();
                assert_eq!(places.join("|"), expected, "{lines:#?}");
            }
            Ok(())
        });
    }
}
