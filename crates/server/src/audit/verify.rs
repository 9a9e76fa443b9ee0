//! Verification of the chain in audit files.

mod lines;
mod order;
mod report;
#[cfg(test)]
mod tests;
mod verifier;

use std::path::PathBuf;

use super::chain::{ChainKeys, Head};
use lines::Lines;
use verifier::Verifier;

#[cfg(test)]
use report::BreakCode;
pub(crate) use report::{Break, Report};

/// Verifies the records of files, in the order of the chain, until the first break. Then looks for the heads.
///
/// # Errors
/// Fails when a file cannot be read.
pub(crate) fn verify(files: &[PathBuf], keys: &ChainKeys, heads: &[Head]) -> anyhow::Result<Report> {
    let files = order::in_chain_order(files)?;
    let mut verifier = Verifier::new(keys, heads);
    for file in &files {
        let mut lines = Lines::open(file)?;
        while let Some(line) = lines.next()? {
            if let Err(cause) = verifier.line(file, &line) {
                let report = verifier.broken(cause);
                return Ok(Report { files, ..report });
            }
        }
    }
    let report = verifier.end();
    Ok(Report { files, ..report })
}
