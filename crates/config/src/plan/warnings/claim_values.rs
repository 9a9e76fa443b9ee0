//! Values of claim rules that cannot match: patterns, domains, lists, and texts with invisible
//! characters, where values are compared exactly.

use crate::{invisible::is_invisible, toml_text};

/// Claims whose values have an `@`.
const ADDRESSES: [&str; 2] = ["email", "upn"];
/// Claims whose values can have an `@`.
const POSSIBLE_ADDRESSES: [&str; 2] = ["preferred_username", "unique_name"];

/// Adds a warning about each value of the `one_of` of the rule `key` that is a pattern, a
/// domain, or a list, or has invisible characters.
pub(in crate::plan) fn warn(key: &str, claim: &str, one_of: &[String], warnings: &mut Vec<String>) {
    let is_address = ADDRESSES.contains(&claim);
    for value in one_of {
        if let Some(problem) = other_text(value) {
            warnings.push(format!("{key}.one_of has {value:?}, {problem}"));
            continue;
        }
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

/// Returns the problem of a value that is evidently another text than the meant one, and the fix.
fn other_text(value: &str) -> Option<String> {
    let visible: String = value.chars().filter(|c| !is_invisible(*c)).collect();
    let meant = visible.trim();
    if meant.len() < value.len() {
        let kind = match visible.len() < value.len() {
            true => "invisible characters",
            false => "spaces around the text",
        };
        let fix = match meant.is_empty() {
            true => "remove it".to_owned(),
            false => format!("write {}", toml_text::string(meant)),
        };
        return Some(format!(
            "which has {kind}, and values are compared exactly; {fix}"
        ));
    }
    let values: Vec<String> = names_in_list(value)?
        .into_iter()
        .map(toml_text::string)
        .collect();
    Some(format!(
        "which is one value with a comma in it, and values are compared exactly; write each in a string of its own: one_of = [{}]",
        values.join(", ")
    ))
}

/// Returns the names in a text that is a list of them. Names of groups in a directory have commas,
/// too, such as `CN=staff,DC=example,DC=com`, and so have names of people.
fn names_in_list(value: &str) -> Option<Vec<&str>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@".contains(c);
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    let are_plain = names
        .iter()
        .all(|name| !name.is_empty() && name.chars().all(is_plain));
    let is_sentence = value.contains(' ') && value.contains(|c: char| c.is_ascii_uppercase());
    (names.len() > 1 && are_plain && !is_sentence).then_some(names)
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
            ("groups", "a,b", "one_of = [\"a\", \"b\"]"),
            ("groups", "a, b", "one_of = [\"a\", \"b\"]"),
            (
                "groups",
                " staff",
                "spaces around the text, and values are compared exactly; write \"staff\"",
            ),
            ("groups", "\u{200b} ", "compared exactly; remove it"),
            ("groups", "staff\n", "write \"staff\""),
            ("groups", "staff\u{a0}", "write \"staff\""),
            (
                "groups",
                "st\u{200b}aff",
                "invisible characters, and values are compared exactly; write \"staff\"",
            ),
        ] {
            let mut warnings = Vec::new();
            warn("rule", claim, &[value.to_owned()], &mut warnings);
            assert_eq!(warnings.len(), 1, "{value}: {warnings:#?}");
            assert!(warnings[0].starts_with("rule.one_of has"), "{warnings:#?}");
            assert!(warnings[0].contains(words), "{warnings:#?}");
        }
        let sound = [
            "alice@example.com",
            "staff",
            "@team",
            "example.com",
            "CN=staff,DC=example,DC=com",
            "Doe, Jane",
            "a b",
            "Entwicklung, Köln",
            "a,",
        ]
        .map(String::from);
        let mut warnings = Vec::new();
        warn("rule", "groups", &sound, &mut warnings);
        warn("rule", "email", &sound[..1], &mut warnings);
        assert_eq!(warnings, Vec::<String>::new());
    }
}
