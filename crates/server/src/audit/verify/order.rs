//! The order of files in the chain.

use std::path::PathBuf;

use super::{lines::Lines, verifier::Members};
use crate::audit::chain::ChainedLine;

/// Returns the files in the order of their first records: by number if at most one file begins a chain, and otherwise by time.
/// The names do not matter. Empty files come last.
///
/// # Errors
/// Fails when a file cannot be read.
pub(super) fn in_chain_order(files: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut first_records = Vec::new();
    for file in files {
        let mut lines = Lines::open(file)?;
        let line = lines.next()?;
        let first = line.as_ref().map(|line| {
            let seq = ChainedLine::parse(line.bytes).map_or(0, |line| line.head.seq);
            (seq, Members::parse(line.bytes).timestamp)
        });
        first_records.push((first, file.clone()));
    }
    let chains = first_records.iter().filter(|(first, _)| first.as_ref().is_some_and(|(seq, _)| *seq == 1)).count();
    first_records.sort_by_cached_key(|(first, _)| {
        let (seq, time) = first.clone().unwrap_or((u64::MAX, String::new()));
        // An empty file has no time.
        let time = if chains > 1 && first.is_some() { time } else { String::new() };
        (first.is_none(), time, seq)
    });
    Ok(first_records.into_iter().map(|(_, file)| file).collect())
}
