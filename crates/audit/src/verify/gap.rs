//! Breaks that the operator has permitted with [`WithoutChain::Write`](crate::WithoutChain::Write).

use std::path::PathBuf;

use super::{
    Break, BreakCode, ReadError,
    lines::{Line, Lines},
    verifier::Members,
};
use crate::chain::{ChainKeys, ChainedLine, Head};

/// Adds to the message of a break that the server then began another chain on purpose, if its
/// records say so. It remains a break: what was there before cannot be verified.
///
/// Fails when a file cannot be read.
pub(super) fn explained(
    cause: Break,
    files: &[PathBuf],
    keys: &ChainKeys,
) -> Result<Break, ReadError> {
    let Some(started) = next_chain(&cause, files, keys)? else {
        return Ok(cause);
    };
    let message = format!(
        "{}; the server could not continue the former chain, and began another one at {started}, as audit.without_chain = \
         \"write\" permits",
        cause.message
    );
    Ok(Break { message, ..cause })
}

/// Returns when the server began another chain after the break, because it could not continue the
/// former one.
fn next_chain(
    cause: &Break,
    files: &[PathBuf],
    keys: &ChainKeys,
) -> Result<Option<String>, ReadError> {
    let place = cause.file.as_ref().zip(cause.line);
    let can_be_gap = matches!(cause.code, BreakCode::EndMissing | BreakCode::NotChained);
    let Some((file, number)) = place.filter(|_| can_be_gap) else {
        return Ok(None);
    };
    for path in files.iter().skip_while(|path| *path != file) {
        let mut lines = Lines::open(path)?;
        while let Some(line) = lines.next()? {
            let is_after = path != file || line.number >= number;
            if let Some(started) = start_of_chain(&line, keys).filter(|_| is_after) {
                return Ok(Some(started));
            }
        }
    }
    Ok(None)
}

fn start_of_chain(line: &Line<'_>, keys: &ChainKeys) -> Option<String> {
    let chained = ChainedLine::parse(line.bytes)?;
    let is_first = keys
        .iter()
        .any(|key| chained.follows(&Head::default(), key));
    let members = Members::parse(line.bytes);
    (is_first && members.begins_new_chain).then_some(members.timestamp)
}
