//! `portcullis man DIRECTORY`: writes the manual pages, for the feature `manual`.

use std::{fs, path::Path};

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::Cli;

/// Writes `portcullis.1` and a page for each command that `--help` lists.
pub(crate) fn run(directory: &Path) -> anyhow::Result<()> {
    let written = fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    written.with_context(|| format!("the manual pages cannot be written to {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listed_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path()).unwrap();
        let page = |name: &str| fs::read_to_string(directory.path().join(format!("{name}.1"))).unwrap();
        assert!(page("portcullis").contains("portcullis\\-serve(1)"));
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(page(&format!("portcullis-{}", command.get_name())).contains(".SH OPTIONS"), "{command}");
        }
    }
}
