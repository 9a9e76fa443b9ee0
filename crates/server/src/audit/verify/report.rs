//! [`Report`]: the result of a verification.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::audit::chain::Head;

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
    /// The sequence number.
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

fn as_text<S: Serializer>(head: &Head, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(head)
}
