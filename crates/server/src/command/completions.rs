//! `portcullis completions SHELL`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;

pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    // In memory first: `generate` panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "portcullis", &mut script);
    Ok(super::print(String::from_utf8(script)?.trim_end())?)
}
