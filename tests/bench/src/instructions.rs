//! `cargo xtask bench instructions`: counts the instructions of a request with callgrind, and
//! compares them with a committed table. Instructions do not depend on how busy the machine is, so
//! that a change of 1 % is visible.

mod case;
mod count;
mod counts;
mod growth;
mod http2;
mod profile;
mod requests;
mod server;
mod stream;
mod table;
mod traffic;
mod upstream;

use std::{fs, path::PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, builder::PossibleValuesParser};
use portcullis_scenarios::block_on;
use xtask::{
    built,
    instructions::{Environment, TABLE},
    programs, workspace,
};

use self::{case::Case, counts::Counts, table::Committed};

/// How often a check counts a case again that has changed. Timers and a busy machine add
/// instructions to either of the two measurements whose difference counts.
const CONFIRMATIONS: u32 = 2;

/// What to count.
#[derive(Args)]
pub(super) struct Options {
    /// Count only this case. Can be repeated.
    #[arg(long = "case", value_name = "NAME", value_parser = PossibleValuesParser::new(Case::ALL.map(Case::name)))]
    cases: Vec<String>,
    /// Requests of the smaller of two measurements. The larger one has twice as many, and their
    /// difference counts.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(10..))]
    requests: u32,
    /// The release build to count, in place of one that is built now.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Keep the files of callgrind, which callgrind_annotate and KCachegrind show, in this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Fail when a case has grown or shrunk by more than 1 %.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Write the counts to the table and to the page that shows it.
    #[arg(long)]
    write: bool,
}

/// The programs of a measurement.
struct Programs {
    valgrind: PathBuf,
    vgdb: PathBuf,
    server: PathBuf,
}

/// Counts, prints, and compares with the table or writes it. Fails without valgrind, at an
/// unexpected response, and when a check finds a change.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    if let Some(folder) = &options.keep {
        // Before the build, which takes minutes.
        fs::create_dir_all(folder)
            .with_context(|| format!("--keep: {} cannot be created", folder.display()))?;
    }
    let programs = options.programs()?;
    let root = workspace::root();
    let mut committed = Committed::read(&root)?;
    let environment = Environment::of_this_machine(&programs.valgrind)?;
    if let Some(difference) = committed.environment.difference(&environment) {
        println!("the table is from elsewhere: {difference}");
    }
    let mut changed = 0;
    for case in options.selected() {
        let counts = options
            .count(&programs, case, committed.get(case))
            .with_context(|| case.name())?;
        println!("{}", growth::line(case, &counts, committed.get(case)));
        if growth::has_changed(&counts, committed.get(case)) {
            changed += 1;
            if let Some(committed) = committed.get(case) {
                println!("{}", growth::explanation(&counts, committed));
            }
        }
        if options.write {
            committed.set(case, counts);
        }
    }
    if options.write {
        committed.environment = environment;
        return committed.write(&root);
    }
    ensure!(
        changed == 0 || !options.check,
        "{changed} cases differ from {TABLE} by more than 1 %. If that is intended, or to keep a gain, run \
         `cargo xtask bench instructions --write` and commit the table with the change."
    );
    Ok(())
}

impl Options {
    /// Returns the cases to count, in the order of the table.
    fn selected(&self) -> impl Iterator<Item = Case> {
        let is_selected = |case: &Case| {
            self.cases.is_empty() || self.cases.iter().any(|name| name == case.name())
        };
        Case::ALL.into_iter().filter(is_selected)
    }

    /// Counts a case. A check counts one that differs from the committed count again, and keeps the
    /// count that differs least.
    fn count(
        &self,
        programs: &Programs,
        case: Case,
        committed: Option<&Counts>,
    ) -> anyhow::Result<Counts> {
        let requests = case.repetitions() * self.requests;
        let once = || block_on(count::count(programs, case, requests, self.keep.as_deref()));
        let mut nearest = once()?;
        for _ in 0..CONFIRMATIONS {
            if !self.check || !growth::has_changed(&nearest, committed) {
                break;
            }
            nearest = growth::nearest([nearest, once()?], committed);
        }
        Ok(nearest)
    }

    /// Finds valgrind, and builds the server. It contains its OpenSSL, so that no library of the
    /// machine is counted but libc.
    fn programs(&self) -> anyhow::Result<Programs> {
        let find = |name| {
            programs::find(name)
                .with_context(|| format!("{name} is not installed (Debian: apt install valgrind)"))
        };
        let build = || {
            let arguments = [
                "--release",
                "--locked",
                "--package=portcullis",
                "--bin=portcullis",
            ];
            built::build_with_vendored_openssl(&arguments)?.program("portcullis")
        };
        Ok(Programs {
            valgrind: find("valgrind")?,
            vgdb: find("vgdb")?,
            server: self.program.clone().map_or_else(build, Ok)?,
        })
    }
}
