//! Verification of the chain in audit files.

mod order;
#[cfg(test)]
mod tests;
mod verifier;

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::{Serialize, Serializer};

use super::chain::{ChainKeys, Head};
use verifier::Verifier;

/// The maximum length of a line in bytes. No record is as long.
const MAX_LINE: u64 = 1 << 20;

/// What files contain, and the first break of the chain.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// The number of records that were verified.
    pub(crate) records: u64,
    /// The number of records that were lost because the queue was full.
    pub(crate) lost: u64,
    /// The number of lines that are incomplete after a crash, and recorded as such.
    pub(crate) torn: u64,
    /// The number of chains.
    pub(crate) chains: u64,
    /// The first verified record.
    pub(crate) first: Option<Verified>,
    /// The last verified record.
    pub(crate) last: Option<Verified>,
    /// Whether the last record is the regular end of a process.
    pub(crate) is_stopped: bool,
    /// Whether the last file ends within a line.
    pub(crate) ends_within_line: bool,
    /// The files in the order of their records.
    pub(crate) files: Vec<PathBuf>,
    /// The first break. `None` if the chain is intact.
    #[serde(rename = "break")]
    pub(crate) first_break: Option<Break>,
}

/// A verified record.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verified {
    pub(crate) seq: u64,
    /// `SEQ:MAC`, as in the log.
    #[serde(serialize_with = "as_text")]
    pub(crate) head: Head,
    pub(crate) timestamp: String,
}

/// The place where a chain is broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Break {
    /// A stable name of the cause.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) file: Option<PathBuf>,
    /// The number of the line, from 1.
    pub(crate) line: Option<u64>,
}

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

fn as_text<S: Serializer>(head: &Head, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(head)
}

/// A line of a file.
pub(super) struct Line<'a> {
    /// The number, from 1.
    pub(super) number: u64,
    /// The bytes without the newline.
    pub(super) bytes: &'a [u8],
    pub(super) has_newline: bool,
}

/// The lines of a file.
struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let open = || -> io::Result<File> {
            let file = File::open(path)?;
            if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
        };
        let file = open().with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), reader: BufReader::new(file), buffer: Vec::new(), number: 0 })
    }

    /// Returns the next line. A longer one than any record is returned in parts, which are not records.
    fn next(&mut self) -> anyhow::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let read = self.reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut self.buffer);
        if read.with_context(|| self.path.display().to_string())? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let bytes = self.buffer.strip_suffix(b"\n");
        let has_newline = bytes.is_some();
        Ok(Some(Line { number: self.number, bytes: bytes.unwrap_or(&self.buffer), has_newline }))
    }
}
