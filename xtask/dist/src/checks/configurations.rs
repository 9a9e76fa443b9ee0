//! The JSON Schema of the configuration, compared with configurations by a validator that editors
//! could use.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use xtask::workspace;

use super::tools;
use crate::report::Step;

/// A configuration that is complete.
const COMPLETE: &str = "\
base_url = \"http://127.0.0.1:3000\"
[[issuer]]
issuer = \"http://127.0.0.1:9000\"
[[resource]]
endpoint = \"/mcp\"
upstream = { http = \"http://127.0.0.1:8000/mcp\" }
";

/// Changes that make it wrong: what is replaced, and by what.
const MISTAKES: &[(&str, &str)] = &[
    ("base_url = \"http://127.0.0.1:3000\"", ""),
    ("base_url", "lisen = \"127.0.0.1:3000\"\nbase_url"),
    ("base_url", "workers = \"four\"\nbase_url"),
    ("endpoint = \"/mcp\"", "endpoint = 1"),
    ("endpoint", "sessions = \"sometimes\"\nendpoint"),
    ("{ http =", "{ htp ="),
    ("[[issuer]]", "[issuer]"),
    ("issuer = ", "jwks = { cooldwn = \"1m\" }\nissuer = "),
];

/// What the validator prints.
#[derive(Deserialize)]
struct Report {
    errors: Vec<Invalid>,
    /// The files that are not TOML.
    parse_errors: Vec<Invalid>,
}

/// An error in a file.
#[derive(Debug, Deserialize)]
struct Invalid {
    filename: PathBuf,
}

/// Validates the configurations of `deploy`, of the documents, and of the tests with other
/// authorization servers, which must be valid, and others that must not be.
pub(super) fn check(folder: &Path) -> anyhow::Result<Step> {
    let python = match tools::python(folder) {
        Ok(python) => python,
        Err(error) => return Ok(Step::NotRun(format!("{error:#}"))),
    };
    let folder = folder.join("configurations");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let schema = folder.join("portcullis.schema.json");
    fs::write(&schema, portcullis_config::schema().to_string())?;
    let mut valid = configurations()?;
    for (position, text) in documented()?.iter().enumerate() {
        valid.push(folder.join(format!("documented-{position}.toml")));
        fs::write(valid.last().context("a file was added")?, text)?;
    }
    let mut wrong = Vec::new();
    for (position, (from, to)) in MISTAKES.iter().enumerate() {
        wrong.push(folder.join(format!("wrong-{position}.toml")));
        let text = COMPLETE.replacen(from, to, 1);
        fs::write(wrong.last().context("a file was added")?, text)?;
    }
    valid.push(folder.join("complete.toml"));
    fs::write(valid.last().context("a file was added")?, COMPLETE)?;

    let validator = python.with_file_name("check-jsonschema");
    let output = Command::new(validator)
        .args(["--output-format", "json", "--schemafile"])
        .arg(&schema)
        .args(valid.iter().chain(&wrong))
        .output()
        .context("check-jsonschema could not be started")?;
    let report: Report = serde_json::from_slice(&output.stdout).with_context(|| {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("check-jsonschema printed something else than expected: {message}")
    })?;
    ensure!(
        report.parse_errors.is_empty(),
        "a configuration is not TOML: {:?}",
        report.parse_errors
    );
    let is_rejected = |file: &PathBuf| report.errors.iter().any(|found| found.filename == *file);
    for file in &valid {
        ensure!(
            !is_rejected(file),
            "the schema rejects {}",
            fs::read_to_string(file)?
        );
    }
    for file in &wrong {
        ensure!(
            is_rejected(file),
            "the schema accepts {}",
            fs::read_to_string(file)?
        );
    }
    Ok(Step::Checked(format!(
        "{} configurations are valid, and {} are not",
        valid.len(),
        wrong.len()
    )))
}

/// Returns the configurations that are files of this repository.
fn configurations() -> anyhow::Result<Vec<PathBuf>> {
    let files = workspace::files(&["deploy", "examples", "tests/idp"], "toml")?;
    let mut found = Vec::new();
    for file in files {
        if is_complete(&fs::read_to_string(&file)?) {
            found.push(file);
        }
    }
    ensure!(!found.is_empty(), "there is no configuration");
    Ok(found)
}

/// Returns the complete configurations of the documents.
fn documented() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for file in workspace::files(&["docs", "README.md"], "md")? {
        let page = fs::read_to_string(&file)?;
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            if line.trim() == "```toml" {
                let block = lines.by_ref().take_while(|line| line.trim() != "```");
                let text = block.collect::<Vec<_>>().join("\n");
                found.extend(is_complete(&text).then_some(text));
            }
        }
    }
    ensure!(!found.is_empty(), "no document has a configuration");
    Ok(found)
}

/// Returns whether a text has the settings without which there is no configuration.
fn is_complete(text: &str) -> bool {
    text.contains("base_url") && text.contains("[[resource]]")
}
