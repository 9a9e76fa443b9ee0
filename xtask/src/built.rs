//! Programs of this workspace, built by cargo.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::workspace;

/// What cargo says of each thing that it built.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds with these arguments, and gives the program of that name. Cargo's own progress is shown on standard error.
pub(crate) fn executable(arguments: &[&str], name: &str) -> anyhow::Result<PathBuf> {
    let output = workspace::cargo(&["build", "--message-format=json-render-diagnostics"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo build could not be started")?;
    if !output.status.success() {
        bail!("cargo build {} failed", arguments.join(" "));
    }
    named(&output.stdout, name)
}

fn named(messages: &[u8], name: &str) -> anyhow::Result<PathBuf> {
    for line in messages.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Message = serde_json::from_slice(line).context("cargo build printed something unexpected")?;
        if message.target.is_some_and(|target| target.name == name)
            && let Some(executable) = message.executable
        {
            return Ok(executable);
        }
    }
    bail!("cargo build made no {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name() {
        let messages = br#"{"reason":"compiler-artifact","target":{"name":"portcullis"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"portcullis"},"executable":"/t/portcullis"}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(named(messages, "portcullis").unwrap(), PathBuf::from("/t/portcullis"));
        assert!(named(messages, "other").is_err());
    }
}
