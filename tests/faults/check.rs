//! `portcullis check`: every value with its source, warnings, and notes.

use std::{fs, os::unix::fs::PermissionsExt as _};

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

/// B9: a catch-all scope causes a warning, and the configuration is valid.
#[tokio::test]
async fn as_text() {
    let file = Scratch::file("portcullis.toml", CONFIGURATION);
    let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stderr.is_empty(), "{checked:?}");

    let line = |key: &str| {
        let found = checked
            .stdout
            .lines()
            .find(|line| line.split_whitespace().next() == Some(key));
        found.unwrap_or_else(|| panic!("{key} is missing:\n{}", checked.stdout))
    };
    assert!(line("base_url").contains("\"http://127.0.0.1:3000\""));
    assert!(line("base_url").contains(file.as_str()));
    assert!(line("listen").ends_with("# default"), "{}", line("listen"));
    assert!(line("resource.0.endpoint").contains("\"/mcp\""));
    assert!(line("session.idle_timeout").ends_with("# default"));

    let warning = checked
        .stdout
        .lines()
        .find(|line| line.starts_with("warning:"))
        .unwrap();
    let place = format!(
        "warning: {}:9: resource[0].required_scopes has the catch-all scope \"all\"",
        file.as_str()
    );
    assert!(warning.starts_with(&place), "{warning}");
    assert!(
        checked
            .stdout
            .trim_end()
            .ends_with("the configuration is valid")
    );
}

/// `--json` lists the values with their origin, including the environment. The variables of client
/// commands are no settings.
#[tokio::test]
async fn as_json() {
    let file = Scratch::file("portcullis.toml", CONFIGURATION);
    let environment = [
        ("PORTCULLIS_WORKERS", "3"),
        ("PORTCULLIS_SESSION__MAX_PER_OWNER", "7"),
        ("PORTCULLIS_TOKEN", "x"),
    ];
    let checked = Portcullis::run_with(
        &["check", "--json", "--config", file.as_str()],
        &environment,
    )
    .await;
    assert_eq!(checked.code, Some(0), "{checked:?}");

    let report: Value = serde_json::from_str(&checked.stdout).unwrap();
    let row = |key: &str| {
        let rows = report["values"].as_array().unwrap();
        rows.iter()
            .find(|row| row["key"] == key)
            .unwrap_or_else(|| panic!("{key} is missing: {report}"))
    };
    for (key, value, origin) in [
        ("workers", Value::from(3), "the environment"),
        ("session.max_per_owner", Value::from(7), "the environment"),
        (
            "base_url",
            Value::from("http://127.0.0.1:3000"),
            file.as_str(),
        ),
        ("resource.0.endpoint", Value::from("/mcp"), file.as_str()),
        ("limits.max_body", Value::from(4 << 20), "default"),
        (
            "issuer.0.algorithms",
            serde_json::json!(["RS256"]),
            "default",
        ),
    ] {
        assert_eq!(row(key)["value"], value, "{key}");
        assert_eq!(row(key)["origin"].as_str(), Some(origin), "{key}");
    }
    assert!(
        report["values"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["key"] != "token"),
        "{report}"
    );
    assert_eq!(
        report["warnings"].as_array().map(Vec::len),
        Some(1),
        "{report}"
    );
}

/// J6: session keys that every user of the machine can read cause a warning of `check` and `serve`
/// with the key and the fix.
#[tokio::test]
async fn readable_session_keys_cause_a_warning() {
    let keys = Scratch::file("session-keys", "a-session-key-0123456789abcdef0123456789");
    let table = format!("\n[session]\nkeys = [{{ file = \"{}\" }}]\n", keys.as_str());
    let configuration =
        format!("listen = \"127.0.0.1:0\"\nstate_dir = \"off\"\n{CONFIGURATION}{table}");
    let file = Scratch::file("portcullis.toml", &configuration);
    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        fs::set_permissions(keys.path(), fs::Permissions::from_mode(mode)).unwrap();
        let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
        let mut warnings = checked
            .stdout
            .lines()
            .filter(|line| line.starts_with("warning: "));
        let is_about =
            |line: &str| line.contains("session.keys[0]") && line.contains("run `chmod ");
        assert_eq!(warnings.any(is_about), is_warned, "{mode:o}: {checked:?}");
    }
    fs::set_permissions(keys.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let running = Portcullis::serve(&configuration).await;
    running
        .logged("session.keys[0]", |line| line["level"] == "WARN")
        .await;
}

/// A configuration with mistakes in rules, and with an issuer that clients cannot reach.
const MISTAKES: &str = r#"
listen = "127.0.0.1:0"
base_url = "https://mcp.example.com"

[[issuer]]
issuer = "http://127.0.0.1:9/realm"

[[resource]]
endpoint = "/mcp"
scopes_supported = ["mcp:tools", "mcp:admin"]
required_scopes = ["mcp:tool"]
upstream = { http = "http://127.0.0.1:9/mcp" }

  [[resource.rule]]
  method = "tools/call"
  name = "[admin]_*"
  scopes = ["mcp:admin"]

  [[resource.rule]]
  method = "tool/call"
  scopes = ["mcp:admin"]

  [[resource.rule]]
  method = "Tools/Call"
  scopes = ["mcp:admn"]

  [[resource.route]]
  path = "/mcp"
  scopes = ["mcp:read"]
"#;

/// The start and a part of each warning about the mistakes.
const WARNINGS: [(&str, &str); 7] = [
    (
        "resource[0].required_scopes has \"mcp:tool\"",
        "did you mean `mcp:tools`?",
    ),
    (
        "resource[0].rule[2].scopes has \"mcp:admn\"",
        "did you mean `mcp:admin`?",
    ),
    (
        "resource[0].route[0].scopes has \"mcp:read\"",
        "is missing in scopes_supported",
    ),
    (
        "resource[0].rule[0].name = \"[admin]_*\"",
        "`*` is the only wildcard",
    ),
    (
        "resource[0].rule[1].method = \"tool/call\"",
        "did you mean `tools/call`?",
    ),
    (
        "resource[0].rule[2].method = \"Tools/Call\"",
        "another letter case than \"tools/call\"",
    ),
    (
        "issuer[0].issuer = \"http://127.0.0.1:9/realm\"",
        "https address of the authorization server",
    ),
];

/// B9, F7: rules that protect nothing, scopes that clients do not request, and an issuer on
/// loopback with a public base URL each cause a warning of `check` and `serve` with the key and the
/// fix.
#[tokio::test]
async fn mistakes_cause_warnings() {
    let file = Scratch::file("portcullis.toml", MISTAKES);
    let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let warnings: Vec<_> = checked
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("warning: "))
        .collect();
    assert_eq!(warnings.len(), WARNINGS.len(), "{warnings:#?}");

    let portcullis = Portcullis::serve(MISTAKES).await;
    for (start, fix) in WARNINGS {
        let place = format!("{}:", file.as_str());
        let text = |line: &&str| {
            line.strip_prefix(&place)
                .and_then(|line| line.split_once(": "))
                .map(|(_, text)| text.to_owned())
        };
        let is_warned = |line: &&str| {
            text(line).is_some_and(|text| text.starts_with(start) && text.contains(fix))
        };
        assert!(warnings.iter().any(is_warned), "{start}: {warnings:#?}");
        let has_place = |line: &Value| {
            line["config.place"]
                .as_str()
                .is_some_and(|place| place.contains("portcullis.toml:"))
        };
        let is_warning = |line: &Value| {
            line["level"] == "WARN"
                && line["message"].as_str().unwrap().starts_with(start)
                && has_place(line)
        };
        portcullis.logged("WARN", is_warning).await;
    }
}

/// B9: a bracket in a method pattern is an error, not a warning.
#[tokio::test]
async fn an_invalid_method_pattern() {
    let file = Scratch::file(
        "portcullis.toml",
        &MISTAKES.replace("\"tool/call\"", "\"tools/[call\""),
    );
    let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let error = checked.stderr.trim_end();
    assert!(
        error.contains(":20: resource[0].rule[1].method = \"tools/[call\""),
        "{error}"
    );
    assert!(!error.contains('\n'), "{error}");
}

const ENTRA: &str = r#"
base_url = "https://mcp.example.com"
trusted_proxies = ["127.0.0.1"]

[[issuer]]
issuer = "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0"

[[resource]]
endpoint = "/mcp"
required_scopes = ["tools"]
upstream = { http = "http://127.0.0.1:9/mcp" }
"#;

/// For Microsoft Entra ID, `check` prints a note with the issuers to configure, and a warning without
/// the audience. Other issuers are errors.
#[tokio::test]
async fn notes_on_entra() {
    let file = Scratch::file("portcullis.toml", ENTRA);
    let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let notes: Vec<_> = checked
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("note: "))
        .collect();
    assert_eq!(notes.len(), 1, "{notes:#?}");
    assert!(
        notes[0]
            .contains("issuer = \"https://sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/\""),
        "{notes:#?}"
    );
    assert!(
        checked
            .stdout
            .contains(":5: issuer[0].audiences lacks the client ID"),
        "{checked:?}"
    );
    let denied = ["check", "--deny-warnings", "--config", file.as_str()];
    assert_eq!(Portcullis::run(&denied).await.code, Some(2));

    let checked = Portcullis::run(&["check", "--json", "--config", file.as_str()]).await;
    let report: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(
        report["notes"].as_array().map(Vec::len),
        Some(1),
        "{report}"
    );

    for (tenant, words) in [
        ("{tenantid}", "template"),
        ("contoso.onmicrosoft.com", "is not an `iss` of Entra ID"),
    ] {
        let file = Scratch::file(
            "portcullis.toml",
            &ENTRA.replace("aaaabbbb-0000-cccc-1111-dddd2222eeee", tenant),
        );
        let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
        assert_eq!(checked.code, Some(1), "{checked:?}");
        assert!(checked.stderr.contains(words), "{checked:?}");
        assert!(checked.stderr.contains("<tenant ID>/v2.0"), "{checked:?}");
    }
}

/// J9: editors get the schema of the configuration.
#[tokio::test]
async fn the_schema_is_printed() {
    let printed = Portcullis::run(&["config-schema"]).await;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert!(schema["properties"]["resource"].is_object());
    let option = Portcullis::run(&["check", "--schema"]).await;
    assert_eq!(option.stdout, printed.stdout);
}
