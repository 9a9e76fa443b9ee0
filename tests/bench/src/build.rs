//! Builds of the programs that are measured.

use std::path::PathBuf;

use xtask::built;

use super::Options;

/// The programs that are measured.
pub(super) struct Programs {
    /// The server, unless only the steps are measured. It is built separately, so that it has the
    /// features of a release.
    pub(super) portcullis: Option<PathBuf>,
    /// The benchmark of the steps, unless only whole requests are measured.
    pub(super) steps: Option<PathBuf>,
}

impl Programs {
    /// Builds what the options need.
    pub(super) fn build(options: &Options) -> anyhow::Result<Self> {
        let build = |is_needed: bool, arguments: &[&str], name: &str| {
            is_needed
                .then(|| built::build(arguments)?.program(name))
                .transpose()
        };
        Ok(Self {
            portcullis: build(
                !options.micro,
                &["--profile=dist", "--package=portcullis", "--bin=portcullis"],
                "portcullis",
            )?,
            steps: build(
                !options.only_macro,
                &[
                    "--profile=dist",
                    "--package=portcullis-bench",
                    "--bench=steps",
                ],
                "steps",
            )?,
        })
    }
}
