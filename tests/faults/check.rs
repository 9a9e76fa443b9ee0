//! `portcullis check`: every value with its origin.

use portcullis_scenarios::{Portcullis, Scratch};
use serde_json::Value;

const CONFIGURATION: &str = r#"
base_url = "http://127.0.0.1:3000"

[[issuer]]
issuer = "https://auth.example.com"

[[resource]]
endpoint = "/mcp"
required_scopes = ["all"]
upstream = { http = "http://127.0.0.1:9/mcp" }
"#;

/// B9: a catch-all scope is warned of, and the configuration is good.
#[tokio::test]
async fn for_people() {
    let file = Scratch::file("portcullis.toml", CONFIGURATION);
    let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stderr.is_empty(), "{checked:?}");
    let line = |key: &str| {
        let found = checked.stdout.lines().find(|line| line.split_whitespace().next() == Some(key));
        found.unwrap_or_else(|| panic!("{key} is missing:\n{}", checked.stdout))
    };
    assert!(line("base_url").contains("\"http://127.0.0.1:3000\"") && line("base_url").contains(file.as_str()));
    assert!(line("listen").ends_with("# default"), "{}", line("listen"));
    assert!(line("resource.0.endpoint").contains("\"/mcp\""));
    assert!(line("session.idle_timeout").ends_with("# default"));
    let warning = checked.stdout.lines().find(|line| line.starts_with("warning:")).unwrap();
    assert!(warning.contains("catch-all") && warning.contains("\"all\"") && warning.contains("/mcp"), "{warning}");
    assert!(checked.stdout.trim_end().ends_with("the configuration is good"));
}

/// The same for machines, with values from the environment.
#[tokio::test]
async fn for_machines() {
    let file = Scratch::file("portcullis.toml", CONFIGURATION);
    let environment =
        [("PORTCULLIS_WORKERS", "3"), ("PORTCULLIS_SESSION__MAX_PER_OWNER", "7"), ("PORTCULLIS_TOKEN", "x")];
    let checked = Portcullis::run_with(&["check", "--json", "--config", file.as_str()], &environment).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let report: Value = serde_json::from_str(&checked.stdout).unwrap();
    let row = |key: &str| {
        let rows = report["values"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key} is missing: {report}"))
    };
    for (key, value, origin) in [
        ("workers", Value::from(3), "the environment"),
        ("session.max_per_owner", Value::from(7), "the environment"),
        ("base_url", Value::from("http://127.0.0.1:3000"), file.as_str()),
        ("resource.0.endpoint", Value::from("/mcp"), file.as_str()),
        ("limits.max_body", Value::from(4 << 20), "default"),
        ("issuer.0.algorithms", serde_json::json!(["RS256"]), "default"),
    ] {
        assert_eq!((&row(key)["value"], row(key)["origin"].as_str()), (&value, Some(origin)), "{key}");
    }
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1), "{report}");
}
