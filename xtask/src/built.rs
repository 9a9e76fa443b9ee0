//! Programs of this workspace, built by cargo.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::workspace;

/// What one call of `cargo build` made.
pub(crate) struct Built(Vec<Message>);

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

/// Builds with these arguments. Cargo's own progress is shown on standard error.
pub(crate) fn build(arguments: &[&str]) -> anyhow::Result<Built> {
    let output = workspace::cargo(&["build", "--message-format=json-render-diagnostics"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo build could not be started")?;
    if !output.status.success() {
        bail!("cargo build {} failed", arguments.join(" "));
    }
    Built::parse(&output.stdout)
}

impl Built {
    /// Where the program of this name is.
    pub(crate) fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let mut named =
            self.0.iter().filter(|message| message.target.as_ref().is_some_and(|target| target.name == name));
        named.find_map(|message| message.executable.clone()).with_context(|| format!("cargo build made no {name}"))
    }

    fn parse(messages: &[u8]) -> anyhow::Result<Self> {
        let lines = messages.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let messages = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
        messages.map(Self).context("cargo build printed something else than expected")
    }
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
        let built = Built::parse(messages).unwrap();
        assert_eq!(built.program("portcullis").unwrap(), PathBuf::from("/t/portcullis"));
        assert!(built.program("other").is_err());
    }
}
