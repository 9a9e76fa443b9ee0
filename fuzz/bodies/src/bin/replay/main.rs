//! `cargo xtask fuzz-smoke`: replays the committed corpora, and mutations of them, through every fuzz target's body.
//!
//! It finds shallow faults, in seconds and with the pinned compiler; `fuzz/` has the targets for longer hunts.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod corpus;
mod replay;

use std::{path::Path, thread};

use anyhow::{Context as _, bail};
use portcullis_fuzz_bodies::TARGETS;

use corpus::Corpora;
use xtask::workspace;

/// As much as a worker of the server has, so that recursion on input shows here.
const STACK: usize = 2 << 20;

fn main() -> anyhow::Result<()> {
    let corpora = Corpora::read(&workspace::root())?;
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let mut faults = corpora.faults(&names);

    let finds = workspace::metadata()?.target_directory.join("fuzz-smoke");
    let replayed = thread::Builder::new().stack_size(STACK).spawn(move || replay_all(&corpora, &finds));
    let replayed = replayed.context("no thread for the replay")?.join();
    faults.extend(replayed.map_err(|_| anyhow::anyhow!("the replay itself panicked"))??);

    if !faults.is_empty() {
        bail!("fuzz targets failed:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

fn replay_all(corpora: &Corpora, finds: &Path) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, body) in TARGETS {
        let inputs = corpora.inputs(name);
        let counts = match replay::replay(*body, inputs) {
            Ok(counts) => counts,
            Err(find) => {
                faults.push(find.keep(name, finds)?);
                continue;
            }
        };
        println!(
            "{name:20} {:>4} inputs {:>7} mutations {:>6} ms, slowest {} us",
            counts.inputs,
            counts.mutations,
            counts.took.as_millis(),
            counts.slowest.as_micros()
        );
    }
    Ok(faults)
}
