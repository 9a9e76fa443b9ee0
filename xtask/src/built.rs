//! Builds programs of this workspace.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::workspace;

const BUILD: &[&str] = &["build", "--message-format=json-render-diagnostics"];

/// The result of one `cargo build`.
pub struct Built(Vec<Message>);

/// Cargo's message about one artifact.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

/// The target that an artifact belongs to.
#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Runs `cargo build` with these arguments. Cargo's progress goes to standard error.
///
/// # Errors
/// Fails when the build fails.
pub fn build(arguments: &[&str]) -> anyhow::Result<Built> {
    run(&mut workspace::cargo(BUILD), arguments)
}

/// Like [`build`], with the OpenSSL that `Cargo.lock` names, even if `OPENSSL_NO_VENDOR` asks for
/// the system's.
///
/// # Errors
/// Fails when the build fails.
pub fn build_with_vendored_openssl(arguments: &[&str]) -> anyhow::Result<Built> {
    run(
        workspace::cargo(BUILD).env_remove("OPENSSL_NO_VENDOR"),
        arguments,
    )
}

fn run(cargo: &mut Command, arguments: &[&str]) -> anyhow::Result<Built> {
    let output = cargo
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
    /// Returns the path of the program with this name.
    ///
    /// # Errors
    /// Fails when the build has no such program.
    pub fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let mut named = self.0.iter().filter(|message| {
            message
                .target
                .as_ref()
                .is_some_and(|target| target.name == name)
        });
        named
            .find_map(|message| message.executable.clone())
            .with_context(|| format!("cargo build made no {name}"))
    }

    /// Parses cargo's messages, one JSON object per line.
    fn parse(messages: &[u8]) -> anyhow::Result<Self> {
        let lines = messages
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let messages = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
        messages
            .map(Self)
            .context("cargo build printed something else than expected")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name() {
        let messages =
            br#"{"reason":"compiler-artifact","target":{"name":"portcullis"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"portcullis"},"executable":"/t/portcullis"}
{"reason":"build-finished","success":true}
"#;
        let built = Built::parse(messages).unwrap();
        assert_eq!(
            built.program("portcullis").unwrap(),
            PathBuf::from("/t/portcullis")
        );
        assert!(built.program("other").is_err());
    }
}
