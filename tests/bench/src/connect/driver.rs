//! Runs the scripts of this folder with Node.js.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;
use xtask::workspace;

/// Runs a script with a plan on its standard input, and returns the JSON objects that it prints,
/// one per line.
pub(super) fn run<T: DeserializeOwned>(
    script: &str,
    plan: &Value,
    folder: &Path,
) -> anyhow::Result<Vec<T>> {
    let mut node = Command::new("node");
    node.arg(
        workspace::root()
            .join("tests/bench/src/connect")
            .join(script),
    );
    node.current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut node = node.spawn().context("node is needed")?;
    node.stdin
        .take()
        .context("no standard input")?
        .write_all(plan.to_string().as_bytes())?;
    let output = node.wait_with_output()?;
    ensure!(
        output.status.success(),
        "{script} ended with {}",
        output.status
    );
    let lines = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(serde_json::from_slice)
        .collect::<Result<_, _>>()
        .with_context(|| format!("the output of {script}"))
}
