//! Plans of whole configurations. Each file below tests one part.

mod broker;
mod implications;
mod issuers;
mod limits;
mod resources;
mod rules;
mod upstream;

use super::*;
use crate::from_text;

/// A valid configuration. Tests change one value in it.
const GOOD: &str = r#"
listen = "127.0.0.1:0"
base_url = "https://mcp.example.com"

[[issuer]]
issuer = "https://auth.example.com/realms/prod"

[[resource]]
endpoint = "/mcp"
required_scopes = ["mcp:tools"]
upstream = { http = "http://127.0.0.1:8000/mcp" }
"#;

/// Validates a configuration as the command `check` does.
fn check(text: &str) -> anyhow::Result<Plan> {
    Plan::new(&from_text(text)?).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(lines.join("\n"))
    })
}

/// Returns the error after `from` is replaced by `to`. It must have one line.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let message = format!(
        "{:#}",
        check(&GOOD.replace(from, to)).err().expect("an error")
    );
    assert!(!message.contains('\n'), "{message}");
    message
}

fn with_lines(more: &str) -> String {
    format!("{GOOD}\n{more}")
}

#[test]
fn a_valid_configuration_has_no_warnings() {
    let plan = check(GOOD).unwrap();
    assert_eq!(
        plan.resources[0].metadata.resource.as_str(),
        "https://mcp.example.com/mcp"
    );
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    assert_eq!(plan.max_head(), 32 << 10);
}

/// Plain http is allowed only on loopback.
#[test]
fn the_base_url_is_https_or_loopback() {
    let message = error("https://mcp.example.com", "http://mcp.example.com");
    assert!(message.contains("base_url"), "{message}");
    assert!(message.contains("use https"), "{message}");
    for loopback in [
        "http://127.0.0.1:3000",
        "http://localhost",
        "http://[::1]:3000",
    ] {
        assert!(
            check(&GOOD.replace("https://mcp.example.com", loopback)).is_ok(),
            "{loopback}"
        );
    }
    for more in [
        "https://mcp.example.com/mcp",
        "https://mcp.example.com/?a",
        "https://a@mcp.example.com",
        "mcp",
    ] {
        assert!(
            error("https://mcp.example.com", more).contains("base_url"),
            "{more}"
        );
    }
}

#[test]
fn limits_have_ranges() {
    for (line, named) in [
        ("[limits]\nmax_body = 1", "limits.max_body"),
        ("[limits]\nmax_token = 1000000", "limits.max_token"),
        ("[limits]\nheader_timeout = \"1h\"", "limits.header_timeout"),
        ("[session]\nmax_total = 0", "session.max_total"),
        ("[session]\nidle_timeout = \"1ms\"", "session.idle_timeout"),
    ] {
        let message = format!("{:#}", check(&with_lines(line)).err().expect("an error"));
        assert!(message.contains(named), "{message}");
    }
    assert!(error("listen", "workers = 0\nlisten").contains("workers"));
}

/// Every TOML block of the documentation is valid.
#[test]
fn the_documented_configurations_are_valid() {
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "0123456789abcdef0123456789abcdef").unwrap();
    let metrics_token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(metrics_token.path(), "fedcba9876543210fedcba9876543210").unwrap();
    for (name, text) in [
        ("README.md", include_str!("../../../../README.md")),
        (
            "docs/use/administration.md",
            include_str!("../../../../docs/use/administration.md"),
        ),
        (
            "docs/use/audit.md",
            include_str!("../../../../docs/use/audit.md"),
        ),
        (
            "docs/use/checking.md",
            include_str!("../../../../docs/use/checking.md"),
        ),
        (
            "docs/use/configuration.md",
            include_str!("../../../../docs/use/configuration.md"),
        ),
        (
            "docs/use/configuration-broker.md",
            include_str!("../../../../docs/use/configuration-broker.md"),
        ),
        (
            "docs/use/configuration-issuers.md",
            include_str!("../../../../docs/use/configuration-issuers.md"),
        ),
        (
            "docs/use/configuration-rules.md",
            include_str!("../../../../docs/use/configuration-rules.md"),
        ),
        (
            "docs/use/metrics.md",
            include_str!("../../../../docs/use/metrics.md"),
        ),
    ] {
        let blocks: Vec<&str> = text
            .split("```toml\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(!blocks.is_empty(), "{name} has no configuration");
        for block in blocks {
            // The named files do not exist here.
            let block = block.replace(
                "/etc/portcullis/admin-token",
                token.path().to_str().unwrap(),
            );
            let block = block.replace(
                "/etc/portcullis/metrics-token",
                metrics_token.path().to_str().unwrap(),
            );
            let block = block.replace(
                "/etc/portcullis/provider-secret",
                token.path().to_str().unwrap(),
            );
            check(&block).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }
}
