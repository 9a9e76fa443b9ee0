//! Ranges of values, and wrong values of environment variables.

use figment::Jail;

use super::mistakes::{SOUND, lines};
use crate::{KeyPath, schema};

/// J9: the ranges in the schema are those that are checked.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn ranges_of_the_schema_are_checked() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        let mut count = 0;
        for table in ["", "session", "limits", "audit"] {
            for name in schema::keys_of(&KeyPath::parse(table)) {
                let key = KeyPath::parse(table).name(name);
                let Some((least, most)) = schema::range(&key) else {
                    let is_integer = schema::type_name(&key) == Some("integer");
                    // One is a word or one of two numbers, the other zero or in a range.
                    let has_no_range = ["ended_status", "rotate_size"].contains(&name);
                    assert!(!is_integer || has_no_range, "{key} has no range");
                    continue;
                };
                count += 1;
                for value in [least - 1, most + 1] {
                    let text = match table {
                        "" => format!("{name} = {value}\n{SOUND}"),
                        "session" => format!("{SOUND}{name} = {value}\n"),
                        "audit" => format!(
                            "{SOUND}[audit]\ntarget = {{ file = \"a\" }}\nrotate_age = \"1h\"\n{name} = {value}\n"
                        ),
                        _ => format!("{SOUND}[{table}]\n{name} = {value}\n"),
                    };
                    jail.create_file("portcullis.toml", &text)?;
                    let outside = format!("{key} = {value} is outside {least} to {most}");
                    let is_named = |line: &String| {
                        line.contains(&outside) || line.contains("audit.keep = 0 keeps no file")
                    };
                    assert!(lines().iter().any(is_named), "{outside}: {:#?}", lines());
                }
            }
        }
        assert!(count >= 15, "{count}");
        Ok(())
    });
}

/// J9: so are those of inner tables.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn ranges_of_inner_tables_are_checked() {
    const PROVIDER: &str = "provider = [{ kind = \"oidc\", issuer = \"https://a.example\", client_id = \"x\", \
                            client_secret = { file = \"portcullis.toml\" } }]";
    let introspects = "validate = \"introspection\"\nclient_id = \"x\"\nclient_secret = { file = \"portcullis.toml\" }\n";
    for (key, text) in [
        (
            "limits.per_address.requests",
            format!("{SOUND}[limits]\nper_address = {{ requests = VALUE, per = \"1m\" }}\n"),
        ),
        (
            "broker.clients.max_registered",
            format!("{SOUND}[broker]\nclients = {{ max_registered = VALUE }}\n{PROVIDER}\n"),
        ),
        (
            "issuer[0].introspection_in_flight",
            SOUND.replacen(
                "[[resource]]",
                &format!("{introspects}introspection_in_flight = VALUE\n[[resource]]"),
                1,
            ),
        ),
    ] {
        let (least, most) = schema::range(&KeyPath::parse(key)).expect(key);
        let (_, name) = key.rsplit_once('.').unwrap();
        let is_rejected = |value: u64| {
            let mut is_rejected = false;
            Jail::expect_with(|jail| {
                jail.clear_env();
                jail.create_file(
                    "portcullis.toml",
                    &text.replace("VALUE", &value.to_string()),
                )?;
                is_rejected = lines().iter().any(|line| line.contains(name));
                Ok(())
            });
            is_rejected
        };
        for (value, expected) in [
            (least - 1, true),
            (least, false),
            (most, false),
            (most + 1, true),
        ] {
            assert_eq!(is_rejected(value), expected, "{key} = {value}");
        }
    }
}

/// J9: the fix of a variable's value is an assignment of the variable.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn fixes_of_variables_are_assignments() {
    for (variable, value, fix) in [
        (
            "PORTCULLIS_LIMITS__MAX_BODY",
            "10MB",
            "a number of bytes; set PORTCULLIS_LIMITS__MAX_BODY=10485760",
        ),
        (
            "PORTCULLIS_AUDIT__TARGET",
            "/var/log/audit.jsonl",
            "audit.target is a string; set PORTCULLIS_AUDIT__TARGET__FILE=…",
        ),
        (
            "PORTCULLIS_SHUTDOWN_TIMEOUT",
            "10",
            "such as PORTCULLIS_SHUTDOWN_TIMEOUT=10s",
        ),
        (
            "PORTCULLIS_SHUTDOWN_TIMEOUT",
            "20",
            "such as PORTCULLIS_SHUTDOWN_TIMEOUT=10s, or \"20s\" if it is in seconds",
        ),
    ] {
        Jail::expect_with(|jail| {
            jail.clear_env();
            jail.create_file("portcullis.toml", SOUND)?;
            jail.set_env(variable, value);
            let lines = lines();
            assert!(
                lines.iter().any(|line| line.ends_with(fix)),
                "{variable}={value}: {lines:#?}"
            );
            Ok(())
        });
    }
}
