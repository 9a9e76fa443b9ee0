//! `portcullis completions SHELL`.

use std::io;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;

pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    clap_complete::generate(shell, &mut Cli::command(), "portcullis", &mut io::stdout());
    Ok(())
}
