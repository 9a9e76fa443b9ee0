//! Verification of the chain in audit files.

mod gap;
mod lines;
mod order;
mod report;
#[cfg(test)]
mod tests;
mod verifier;

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::chain::{ChainKeys, Head};
use lines::Lines;
use verifier::Verifier;

pub use report::{Break, BreakCode, Report, Verified};

/// A file cannot be read. The message contains the cause.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
#[non_exhaustive]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub error: io::Error,
}

impl ReadError {
    fn new(path: &Path, error: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            error,
        }
    }
}

/// Verifies the records of files, in the order of the chain, until the first break. Then looks for
/// the heads, which come from the log (`audit.head`): only they show that the last records were
/// removed. The files can be given in any order.
///
/// # Errors
/// Fails when a file cannot be read.
pub fn files(files: &[PathBuf], keys: &ChainKeys, heads: &[Head]) -> Result<Report, ReadError> {
    let files = order::in_chain_order(files)?;
    let mut verifier = Verifier::new(keys, heads);
    for file in &files {
        let mut lines = Lines::open(file)?;
        while let Some(line) = lines.next()? {
            if let Err(cause) = verifier.line(file, &line) {
                let report = verifier.broken(gap::explained(cause, &files, keys)?);
                return Ok(Report { files, ..report });
            }
        }
    }
    let report = verifier.end();
    Ok(Report { files, ..report })
}
