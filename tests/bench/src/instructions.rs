//! `cargo xtask bench instructions`: counts the instructions of a request with callgrind, and compares them with a
//! committed table. Instructions do not depend on how busy the machine is, so that a creep of 1 % is visible.

mod callgrind;
mod case;
mod growth;
mod profile;
mod server;
mod table;
mod traffic;
mod upstream;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, builder::PossibleValuesParser};
use portcullis_scenarios::block_on;
use xtask::{built, programs, workspace};

use self::{
    case::Case,
    table::{Counts, Table},
};

/// The committed table, in the workspace.
const TABLE: &str = "tests/bench/instructions.toml";

/// What to count.
#[derive(Args)]
pub(super) struct Options {
    /// Count only this case. Can be repeated.
    #[arg(long = "case", value_name = "NAME", value_parser = PossibleValuesParser::new(Case::ALL.map(Case::name)))]
    cases: Vec<String>,
    /// Requests of the shorter of two runs. The longer one has twice as many, and their difference is counted.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..))]
    requests: u32,
    /// The release build to count, in place of one that is built now.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Write the counts to the table, instead of comparing them with it.
    #[arg(long)]
    write: bool,
}

/// Counts, prints, and compares with the table or writes it.
///
/// # Errors
/// Fails when a case has grown by more than [`growth::PERMITTED`], when a case is not in the table, or without valgrind.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let valgrind = programs::find("valgrind").context("valgrind is not installed (Debian: apt install valgrind)")?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => built::build(&["--release", "--package=portcullis", "--bin=portcullis"])?.program("portcullis")?,
    };
    let file = workspace::root().join(TABLE);
    let mut table = Table::read(&file)?;
    let mut grown = 0;
    for case in options.selected() {
        eprintln!("counting {}", case.name());
        let counts = block_on(count(&valgrind, &program, case, options.requests))?;
        let committed = table.get(case.name());
        println!("{}", growth::line(case, &counts, committed));
        if options.write {
            table.set(case.name(), counts);
        } else if growth::has_grown(&counts, committed) {
            println!("{}", growth::explanation(&counts, committed));
            grown += 1;
        }
    }
    if options.write {
        return table.write(&file);
    }
    ensure!(
        grown == 0,
        "{grown} cases have grown by more than 1 % or are not in {TABLE}; if this is intended, write it with \
         `cargo xtask bench instructions --write` in the same commit, which says why"
    );
    Ok(())
}

impl Options {
    /// Returns the cases to count, in the order of the table.
    fn selected(&self) -> impl Iterator<Item = Case> {
        let is_selected = |case: &Case| self.cases.is_empty() || self.cases.iter().any(|name| name == case.name());
        Case::ALL.into_iter().filter(is_selected)
    }
}

/// Counts one case: the difference of two runs, one with twice as many requests, divided by the difference of requests.
async fn count(valgrind: &Path, program: &Path, case: Case, requests: u32) -> anyhow::Result<Counts> {
    let shorter = server::profile(valgrind, program, case, requests).await?;
    let longer = server::profile(valgrind, program, case, 2 * requests).await?;
    Ok(Counts::of(&longer.since(&shorter), requests))
}
