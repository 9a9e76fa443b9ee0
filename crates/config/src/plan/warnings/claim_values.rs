//! Values of claim rules that cannot match: patterns and domains, where values are compared
//! exactly.

use crate::toml_text;

/// Claims whose values have an `@`.
const ADDRESSES: [&str; 2] = ["email", "upn"];
/// Claims whose values can have an `@`.
const POSSIBLE_ADDRESSES: [&str; 2] = ["preferred_username", "unique_name"];

/// Adds a warning about each value of the `one_of` of the rule `key` that is a pattern or a domain.
pub(in crate::plan) fn warn(key: &str, claim: &str, one_of: &[String], warnings: &mut Vec<String>) {
    let is_address = ADDRESSES.contains(&claim);
    for value in one_of {
        let domain = value
            .trim_start_matches('*')
            .strip_prefix('@')
            .unwrap_or(value);
        let is_domain = domain.contains('.') && !domain.contains(['@', '*', '/', ' ']);
        if is_domain && (domain.len() < value.len() || is_address) {
            let domain = toml_text::string(domain);
            let fix = if is_address || POSSIBLE_ADDRESSES.contains(&claim) {
                format!("write domain = [{domain}] in place of one_of")
            } else {
                format!("write one_of = [{domain}]")
            };
            warnings.push(format!(
                "{key}.one_of has {value:?}, and values are compared exactly with the whole claim, so that no user has it; {fix}"
            ));
        } else if value.contains('*') {
            warnings.push(format!(
                "{key}.one_of has {value:?}, and values are compared exactly, so that the `*` stands for no other \
                 characters; write each value"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::warn;

    /// J9: patterns and domains are named with the value to write, and others are not.
    #[test]
    fn patterns_are_named() {
        for (claim, value, words) in [
            ("email", "*@example.com", "write domain = [\"example.com\"]"),
            ("email", "@example.com", "write domain = [\"example.com\"]"),
            ("email", "example.com", "write domain = [\"example.com\"]"),
            (
                "preferred_username",
                "@example.com",
                "write domain = [\"example.com\"]",
            ),
            ("hd", "@example.com", "write one_of = [\"example.com\"]"),
            (
                "groups",
                "*@example.com",
                "write one_of = [\"example.com\"]",
            ),
            (
                "email",
                "@soft\u{ad}hyphen.example",
                "write domain = [\"soft\\u00ADhyphen.example\"]",
            ),
            ("groups", "mcp-*", "write each value"),
            ("groups", "*", "write each value"),
        ] {
            let mut warnings = Vec::new();
            warn("rule", claim, &[value.to_owned()], &mut warnings);
            assert_eq!(warnings.len(), 1, "{value}: {warnings:#?}");
            assert!(warnings[0].starts_with("rule.one_of has"), "{warnings:#?}");
            assert!(warnings[0].contains(words), "{warnings:#?}");
        }
        let sound = ["alice@example.com", "staff", "@team", "example.com"].map(String::from);
        let mut warnings = Vec::new();
        warn("rule", "groups", &sound, &mut warnings);
        warn("rule", "email", &sound[..1], &mut warnings);
        assert_eq!(warnings, Vec::<String>::new());
    }
}
