//! Placeholders of shells and templates, such as `${NAME}`: nothing replaces them here.

use figment::value::Value;

use crate::{Config, Diagnostic, KeyPath, Segment, schema};

/// Keys with URLs, addresses, names of scopes and identifiers. A placeholder is never meant there.
const NEVER_MEANT: &[&str] = &[
    "allowed_hosts",
    "allowed_origins",
    "api_url",
    "audiences",
    "base_url",
    "client_id",
    "default_resource",
    "endpoint",
    "http",
    "introspection_endpoint",
    "issuer",
    "issuers",
    "jwks_uri",
    "listen",
    "proxy",
    "redirect_hosts",
    "redis",
    "required_scopes",
    "resource",
    "resource_documentation",
    "scope_implies",
    "scopes",
    "scopes_supported",
    "tenant",
    "tenants",
    "trusted_proxies",
];

/// Keys with paths. A file can have such a name.
const PATHS: &[&str] = &[
    "ca_file",
    "certificates",
    "file",
    "jwks_file",
    "key",
    "logo_file",
    "state_dir",
    "unix",
    "upstream_ca_file",
];

/// Returns the errors of values that are URLs, addresses, names of scopes or identifiers.
pub(super) fn errors(root: &Value) -> Vec<Diagnostic> {
    found(root, NEVER_MEANT)
}

/// Returns the warnings about paths.
pub(super) fn warnings(config: &Config) -> Vec<Diagnostic> {
    Value::serialize(config)
        .map(|root| found(&root, PATHS))
        .unwrap_or_default()
}

/// Returns the errors with those about files whose paths have a placeholder in other words: that
/// is the reason why there is no such file.
pub(super) fn as_reason(config: &Config, mut errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for warning in warnings(config) {
        // An error about the table of the path, such as `audit.target`, and not one about all of
        // `[[issuer]]`.
        let is_table = |key: &KeyPath| matches!(key.segments().last(), Some(Segment::Name(_)));
        let table = warning.key.parent().filter(is_table);
        let is_about = |error: &&mut Diagnostic| {
            error.key == warning.key || table.as_ref() == Some(&error.key)
        };
        if let Some(error) = errors.iter_mut().find(is_about) {
            *error = warning;
        }
    }
    errors
}

/// Returns the problem of a text that has a placeholder, with the fix and without the text, which
/// may be a misplaced secret.
pub(super) fn problem(text: &str) -> Option<String> {
    Some(format!(
        "contains {}, which is not replaced here; write the value",
        form(text)?
    ))
}

fn found(root: &Value, names: &[&str]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    walk(root, &KeyPath::default(), &mut |key, text| {
        if is_of(key, names)
            && let Some(problem) = problem(text)
        {
            found.push(Diagnostic {
                key: key.clone(),
                text: format!("{key} {problem}"),
            });
        }
    });
    found
}

/// Whether the key, or the one around a table with names of the operator, is one of these.
fn is_of(key: &KeyPath, names: &[&str]) -> bool {
    let above = || key.names().rev().nth(1);
    key.names().next_back().is_some_and(|name| {
        names.contains(&name)
            || (!schema::has_fixed_name(key) && above().is_some_and(|name| names.contains(&name)))
    })
}

fn walk(value: &Value, key: &KeyPath, visit: &mut impl FnMut(&KeyPath, &str)) {
    match value {
        Value::String(_, text) => visit(key, text),
        Value::Dict(_, members) => {
            for (name, member) in members {
                walk(member, &key.name(name), visit);
            }
        }
        Value::Array(_, items) => {
            for (position, item) in items.iter().enumerate() {
                walk(item, &key.index(position), visit);
            }
        }
        _ => {}
    }
}

/// Returns the notation of the first placeholder in a text.
fn form(text: &str) -> Option<&'static str> {
    let between = |start: &str, end: &str| {
        let (_, rest) = text.split_once(start)?;
        rest.split_once(end).map(|(inner, _)| inner)
    };
    if between("${", "}").is_some() {
        Some("${…}")
    } else if between("{{", "}}").is_some() {
        Some("{{ … }}")
    } else if between("<", ">").is_some_and(is_word) {
        Some("<…>")
    } else if text.split('$').skip(1).any(begins_with_name) {
        Some("$NAME")
    } else if text
        .split('%')
        .skip(1)
        .any(|part| is_name(part) && !is_percent_encoded(part))
        && text.matches('%').count() > 1
    {
        Some("%NAME%")
    } else {
        None
    }
}

/// Whether a text between angle brackets is a word, and not an element of HTML or SVG.
fn is_word(text: &str) -> bool {
    text.starts_with(char::is_alphabetic) && !text.ends_with('/')
}

/// Whether a text begins with the name of a variable in capitals. Paths of URLs have names in small
/// letters after a dollar sign, such as `$batch`.
fn begins_with_name(text: &str) -> bool {
    let end = text.find(|c: char| !is_of_name(c)).unwrap_or(text.len());
    is_name(&text[..end]) && !text[end..].starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_name(text: &str) -> bool {
    text.len() > 1
        && text.chars().all(is_of_name)
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_uppercase() || character.is_ascii_digit() || character == '_'
}

/// Whether the text after a percent sign begins with the two digits of a byte (RFC 3986, section
/// 2.1).
fn is_percent_encoded(text: &str) -> bool {
    text.chars().take_while(char::is_ascii_hexdigit).count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_recognized() {
        for (text, expected) in [
            ("https://${HOST}/realms/prod", "${…}"),
            ("127.0.0.1:${PORT:-3000}", "${…}"),
            ("{{ .Values.baseUrl | quote }}", "{{ … }}"),
            ("$HOME/.portcullis", "$NAME"),
            ("%APPDATA%\\portcullis", "%NAME%"),
            ("https://login.example/<tenant ID>/v2.0", "<…>"),
        ] {
            assert_eq!(form(text), Some(expected), "{text}");
        }
        for text in [
            "https://a.example/odata/$batch",
            "https://a.example/a%20b%C3%A4c",
            "https://a.example/%E4C%20",
            "{tenantid}",
            "a$",
            "$5",
            "100%",
            "a < b",
            "<svg/>",
            "",
        ] {
            assert_eq!(form(text), None, "{text}");
        }
    }

    /// Descriptions, patterns and names of variables can have such texts.
    #[test]
    fn only_values_where_none_is_meant_are_checked() {
        for (key, is_error, is_warning) in [
            ("issuer[0].issuer", true, false),
            ("issuer[0].audiences[0]", true, false),
            ("issuer[0].audiences.mcp[0]", true, false),
            ("resource[0].scope_implies.admin[0]", true, false),
            ("resource[0].upstream.http", true, false),
            ("resource[0].upstream.unix", false, true),
            ("broker.provider[0].client_secret.file", false, true),
            ("broker.provider[0].client_secret.env", false, false),
            ("broker.provider[0].allow[0].one_of[0]", false, false),
            ("broker.scope_descriptions.admin", false, false),
            ("resource[0].rule[0].name", false, false),
            ("resource[0].route[0].path", false, false),
        ] {
            let key = KeyPath::parse(key);
            assert_eq!(is_of(&key, NEVER_MEANT), is_error, "{key}");
            assert_eq!(is_of(&key, PATHS), is_warning, "{key}");
        }
    }
}
