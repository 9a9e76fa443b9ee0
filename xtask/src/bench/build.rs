//! Release builds of everything that takes part.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;

use super::Options;
use crate::workspace;

/// The programs that are measured, or that help.
#[derive(Args)]
pub(super) struct Programs {
    /// The server; it is built alone, so that it has the features that it ships with.
    #[arg(long)]
    pub(super) portcullis: Option<PathBuf>,
    /// Writes keys and a token.
    #[arg(long)]
    pub(super) issuer: PathBuf,
    /// Measures the steps of a request.
    #[arg(long)]
    pub(super) steps: PathBuf,
}

impl Programs {
    pub(super) fn to_arguments(&self) -> Vec<PathBuf> {
        let portcullis = self.portcullis.iter().flat_map(|path| ["--portcullis".into(), path.clone()]);
        let others = [("--issuer", &self.issuer), ("--steps", &self.steps)];
        portcullis.chain(others.into_iter().flat_map(|(name, path)| [name.into(), path.clone()])).collect()
    }
}

/// Builds what the options need. The first path is this tool's own.
pub(super) fn build(options: &Options) -> anyhow::Result<(PathBuf, Programs)> {
    let tools = executables(&[
        "--package=xtask",
        "--package=portcullis-scenarios",
        "--bin=xtask",
        "--bin=bench_issuer",
        "--bench=micro",
    ])?;
    let portcullis =
        if options.micro { None } else { Some(executables(&["--package=portcullis", "--bin=portcullis"])?) };
    let programs = Programs {
        portcullis: portcullis.map(|built| named(&built, "portcullis")).transpose()?,
        issuer: named(&tools, "bench_issuer")?,
        steps: named(&tools, "micro")?,
    };
    Ok((named(&tools, "xtask")?, programs))
}

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

/// Builds and lists what came out. Cargo's own progress is shown on standard error.
fn executables(what: &[&str]) -> anyhow::Result<Vec<Message>> {
    let output = workspace::cargo(&["build", "--release", "--message-format=json-render-diagnostics"])
        .args(what)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo build could not be started")?;
    if !output.status.success() {
        bail!("cargo build {} failed", what.join(" "));
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    messages
        .map(|line| serde_json::from_slice(line).context("cargo build printed something else than expected"))
        .collect()
}

fn named(built: &[Message], name: &str) -> anyhow::Result<PathBuf> {
    built
        .iter()
        .filter(|message| message.target.as_ref().is_some_and(|target| target.name == name))
        .find_map(|message| message.executable.clone())
        .with_context(|| format!("cargo build made no {name}"))
}
