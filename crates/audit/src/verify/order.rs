use std::path::PathBuf;

use super::{ReadError, lines::Lines, verifier::Members};
use crate::chain::ChainedLine;

/// The first record of a file.
struct FirstRecord<'a> {
    file: &'a PathBuf,
    /// 0 if the first line is not a record of a chain.
    seq: u64,
    timestamp: String,
}

/// Returns the files in the order of their first records: by number if at most one file begins a
/// chain, and otherwise by time. The names do not matter. Empty files come last. Fails when a file
/// cannot be read.
pub(super) fn in_chain_order(files: &[PathBuf]) -> Result<Vec<PathBuf>, ReadError> {
    let mut first_records = Vec::new();
    let mut empty = Vec::new();
    for file in files {
        match Lines::open(file)?.next()? {
            Some(line) => {
                let seq = ChainedLine::parse(line.bytes).map_or(0, |line| line.head.seq);
                first_records.push(FirstRecord {
                    file,
                    seq,
                    timestamp: Members::parse(line.bytes).timestamp,
                });
            }
            None => empty.push(file),
        }
    }
    let chains = first_records.iter().filter(|first| first.seq == 1).count();
    first_records.sort_by_key(|first| first.seq);
    if chains > 1 {
        // Records of one time stay in the order of their numbers.
        first_records.sort_by(|a, b| a.timestamp.cmp(&b.timestamp));
    }
    Ok(first_records
        .into_iter()
        .map(|first| first.file)
        .chain(empty)
        .cloned()
        .collect())
}
