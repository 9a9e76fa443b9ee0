//! `cargo xtask fuzz-smoke`: replays the committed corpora, and mutations of them, through every
//! fuzz target's body.
//!
//! It finds shallow bugs in seconds with the pinned compiler. `fuzz/` has the targets for longer
//! runs.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod corpus;
mod replay;

use std::{path::Path, thread};

use anyhow::{Context as _, bail};
use portcullis_fuzz_bodies::TARGETS;

use corpus::Corpora;
use xtask::workspace;

/// The stack size of a server's worker, so that recursion on input overflows here, too.
const STACK: usize = 2 << 20;

fn main() -> anyhow::Result<()> {
    let corpora = Corpora::read(&workspace::root())?;
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let mut failures = corpora.mismatches(&names);

    let folder = workspace::metadata()?.target_directory.join("fuzz-smoke");
    let replayed = thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || replay_all(&corpora, &folder));
    let replayed = replayed.context("no thread for the replay")?.join();
    failures.extend(replayed.map_err(|_| anyhow::anyhow!("the replay itself panicked"))??);

    if !failures.is_empty() {
        bail!("fuzz targets failed:\n  {}", failures.join("\n  "));
    }
    Ok(())
}

/// Replays all targets, prints their counts, and returns the failures. Failing inputs are saved in
/// `folder`.
fn replay_all(corpora: &Corpora, folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut failures = Vec::new();
    for (name, body) in TARGETS {
        let inputs = corpora.inputs(name);
        let counts = match replay::replay(*body, inputs) {
            Ok(counts) => counts,
            Err(failure) => {
                failures.push(failure.save(name, folder)?);
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
    Ok(failures)
}
