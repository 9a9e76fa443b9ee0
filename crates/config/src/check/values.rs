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
                    let is_bounded =
                        schema::type_name(&key) == Some("integer") && schema::unit(&key).is_empty();
                    // It is one of two numbers, or a word.
                    assert!(!is_bounded || name == "ended_status", "{key} has no range");
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
