//! Environment variables that set keys: their names, their values, and those that cannot.

use figment::{
    providers::Env,
    value::{self, Dict},
};
use serde_json::Value;

use crate::{KeyPath, Segment, schema, syntax, toml_text};

/// The start of the names of environment variables.
const PREFIX: &str = "PORTCULLIS_";
/// The transport protocols of a Service of Kubernetes.
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];
/// What separates the names of tables and keys.
const SEPARATOR: &str = "__";

/// Variables with the prefix that are not configuration: tokens of clients and administrators, the
/// log filter, the path of test vectors, and the sign of the container image.
const NOT_CONFIGURATION: &[&str] = &[
    "token",
    "admin_token",
    "metrics_token",
    "log",
    "vectors",
    "container",
];

/// Returns the variables that set keys of tables.
pub(super) fn provider() -> Env {
    all().filter(|key| !is_in_list(&key_of(key.as_str())))
}

/// Returns the keys of lists, such as `resource[0].endpoint`, that variables name. The lists have
/// no entries beside those of the file.
pub(super) fn of_lists() -> Vec<KeyPath> {
    let keys = all();
    let keys = keys.iter().map(|(key, _)| key_of(key.as_str()));
    keys.filter(is_in_list).collect()
}

/// Returns the name of a variable with more levels than values of the file can have: names and
/// values are read recursively. Brackets in strings count.
pub(super) fn too_deep() -> Option<String> {
    let all = all();
    let mut all = all
        .iter()
        .map(|(key, value)| (key_of(key.as_str()), depth(&value)));
    all.find(|(key, depth)| key.segments().len() + depth > syntax::MAX_DEPTH)
        .map(|(key, _)| name(&key))
}

fn depth(value: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in value.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn key_of(name: &str) -> KeyPath {
    KeyPath::parse(&name.to_ascii_lowercase())
}

fn all() -> Env {
    let prefixed = Env::prefixed(PREFIX);
    let of_services: Vec<String> = prefixed
        .iter()
        .map(|(name, value)| (name.to_string().to_ascii_lowercase(), value))
        .filter(|(name, value)| is_of_service(name, value))
        .map(|(name, _)| name)
        .collect();
    prefixed
        .ignore(NOT_CONFIGURATION)
        .filter(move |name| !of_services.contains(&name.as_str().to_ascii_lowercase()))
        .split(SEPARATOR)
}

/// Whether Kubernetes sets this variable for a Service named `portcullis` or `portcullis-…`, in
/// each container of the namespace. `name` is without the prefix, in lower case.
/// <https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>
fn is_of_service(name: &str, value: &str) -> bool {
    // The name of the Service before, and that of its port after.
    let between = |word| format!("_{name}_").contains(word);
    let is_address = PROTOCOLS
        .iter()
        .any(|protocol| value.starts_with(&format!("{protocol}://")));
    let is_of_port = || {
        let parts: Vec<&str> = name.split('_').collect();
        let parts = match &parts[..] {
            [parts @ .., "proto" | "port" | "addr"] => parts,
            parts => parts,
        };
        matches!(parts, [.., "port", number, protocol]
            if number.parse::<u16>().is_ok() && PROTOCOLS.contains(protocol))
    };
    !name.contains(SEPARATOR)
        && (between("_service_host_")
            || between("_service_port_")
            || (format!("_{name}").ends_with("_port") && is_address)
            || is_of_port())
}

/// Returns the fix for a variable that a secret names as its source, and whose name is that of a
/// setting.
pub(super) fn of_secret(key: &KeyPath, written: &value::Value) -> Option<String> {
    let variable = name(key);
    let other_name = variable.strip_prefix(PREFIX)?;
    names_variable(written, &variable).then(|| {
        format!(
            "variables whose names begin with {PREFIX} are settings; rename the variable, here and in the source of the \
             secret: {{ env = \"{other_name}\" }}"
        )
    })
}

/// Whether a secret in this value has the variable as its source.
fn names_variable(written: &value::Value, variable: &str) -> bool {
    let of_table = |table: &Dict| {
        let source = table.get("env").and_then(value::Value::as_str);
        source.is_some_and(|name| name == variable)
            || table.values().any(|value| names_variable(value, variable))
    };
    match written {
        value::Value::Dict(_, table) => of_table(table),
        value::Value::Array(_, items) => items.iter().any(|item| names_variable(item, variable)),
        _ => false,
    }
}

fn is_in_list(key: &KeyPath) -> bool {
    let mut table = key.parent();
    while let Some(path) = table {
        if schema::type_name(&path) == Some("array") {
            return true;
        }
        table = path.parent();
    }
    false
}

/// Returns the name of the variable of a key.
pub(super) fn name(key: &KeyPath) -> String {
    let names = key.segments().iter().map(|segment| match segment {
        Segment::Name(name) => name.to_ascii_uppercase(),
        Segment::Index(position) => position.to_string(),
    });
    let names: Vec<String> = names.collect();
    format!("{PREFIX}{}", names.join(SEPARATOR))
}

/// Returns an assignment as in a shell, such as `PORTCULLIS_LISTEN=127.0.0.1:3000`.
pub(super) fn assignment(key: &KeyPath, value: &Value) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@".contains(c);
    let text = match value {
        Value::String(text) => text.clone(),
        other => toml_text::value(other)?,
    };
    Some(if text.chars().all(is_plain) {
        format!("{}={text}", name(key))
    } else {
        format!("{}='{text}'", name(key))
    })
}

/// Returns what to write instead of a variable whose name has one underscore between table and key.
pub(super) fn meant(table: &KeyPath, name: &str) -> Option<String> {
    let splits = name.match_indices('_').filter_map(|(at, _)| {
        let inner = table.name(&name[..at]);
        Some((schema::type_name(&inner)?, inner, &name[at + 1..]))
    });
    for (type_name, inner, rest) in splits {
        if type_name == "array" {
            return Some(format!(
                "keys of [[{}]] can only be set in the file",
                inner.header()
            ));
        }
        let key = inner.name(rest);
        if schema::has_fixed_name(&key) {
            let name = self::name(&key);
            return Some(format!("did you mean {name}, with two underscores?"));
        }
        if let Some(fix) = meant(&inner, rest) {
            return Some(fix);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_with_one_underscore_are_recognized() {
        let meant = |name| meant(&KeyPath::default(), name).unwrap_or_default();
        for (name, fix) in [
            ("session_idle_timeout", "PORTCULLIS_SESSION__IDLE_TIMEOUT,"),
            ("admin_tls_key", "PORTCULLIS_ADMIN__TLS__KEY,"),
            (
                "resource_endpoint",
                "keys of [[resource]] can only be set in the file",
            ),
        ] {
            assert!(meant(name).contains(fix), "{name}: {}", meant(name));
        }
        for name in ["listn", "base_urls", "session_x", "session_", "_"] {
            assert_eq!(meant(name), "", "{name}");
        }
    }

    /// J9: variables that Kubernetes sets for Services are not settings.
    #[test]
    fn variables_of_services_are_recognized() {
        for (name, value, expected) in [
            ("service_host", "10.0.0.1", true),
            ("service_port", "3000", true),
            ("service_port_http", "3000", true),
            ("service_port_my_http", "3000", true),
            ("port", "tcp://10.0.0.1:3000", true),
            ("port", "udp://10.0.0.1:3000", true),
            ("port_3000_tcp", "tcp://10.0.0.1:3000", true),
            ("port_3000_tcp_proto", "tcp", true),
            ("port_3000_udp_port", "3000", true),
            ("port_3000_tcp_addr", "10.0.0.1", true),
            ("redis_service_host", "10.0.0.1", true),
            ("redis_port", "tcp://10.0.0.1:6379", true),
            ("redis_port_6379_tcp_addr", "10.0.0.1", true),
            ("port", "3000", false),
            ("listen", "tcp://10.0.0.1:3000", false),
            ("service", "x", false),
            ("service_hosts", "x", false),
            ("port_http_tcp", "x", false),
            ("port_3000_addr", "x", false),
            ("session__service_host", "x", false),
            ("support", "tcp://10.0.0.1:3000", false),
        ] {
            assert_eq!(is_of_service(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn values_are_written_as_in_a_shell() {
        for (value, expected) in [
            (json!("127.0.0.1:3000"), "PORTCULLIS_A__B=127.0.0.1:3000"),
            (json!("a b"), "PORTCULLIS_A__B='a b'"),
            (json!(["10.0.0.0/8"]), "PORTCULLIS_A__B='[\"10.0.0.0/8\"]'"),
            (json!(4), "PORTCULLIS_A__B=4"),
        ] {
            let key = KeyPath::parse("a.b");
            assert_eq!(assignment(&key, &value).as_deref(), Some(expected));
        }
    }
}
