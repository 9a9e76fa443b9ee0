//! `portcullis man DIRECTORY`: writes the manual pages, for the feature `manual`.

use std::{fs, io, path::Path, process::ExitCode};

use clap::CommandFactory as _;
use portcullis_terminal::CommandError;

use crate::cli::Cli;

/// Writes `portcullis.1` and a page for each command that `--help` lists.
pub(crate) fn write(directory: &Path) -> Result<ExitCode, CommandError> {
    let written = fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    written.map_err(|error| not_written(directory, &error))?;
    Ok(ExitCode::SUCCESS)
}

fn not_written(directory: &Path, error: &io::Error) -> CommandError {
    let directory = directory.display();
    CommandError::new(format!("the manual pages cannot be written to {directory}: {error}").into())
}
