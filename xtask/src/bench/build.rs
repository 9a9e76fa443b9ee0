//! Release builds of everything that takes part.

use std::path::PathBuf;

use clap::Args;

use super::Options;
use crate::built;

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
    let tools = built::build(&[
        "--release",
        "--package=xtask",
        "--package=portcullis-scenarios",
        "--bin=xtask",
        "--bin=bench_issuer",
        "--bench=micro",
    ])?;
    let portcullis = if options.micro {
        None
    } else {
        Some(built::build(&["--release", "--package=portcullis", "--bin=portcullis"])?.program("portcullis")?)
    };
    let programs = Programs { portcullis, issuer: tools.program("bench_issuer")?, steps: tools.program("micro")? };
    Ok((tools.program("xtask")?, programs))
}
