//! [`Report`]: the result of a verification.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::chain::Head;

/// What files contain, and the first break of the chain.
///
/// `portcullis audit verify --json` prints it with these names, and with `ok`. The names of fields
/// and codes are part of the contract with users (`docs/use/audit.md`): none is renamed or removed.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The number of records that were verified.
    pub records: u64,
    /// The number of records that were lost because the queue was full.
    pub lost: u64,
    /// The number of rejections without records of their own: the sum of the counts of all
    /// `rejections`.
    pub summed: u64,
    /// The number of lines that are incomplete after a crash or a full disk, and recorded as such.
    pub torn: u64,
    /// The number of chains. The first one can begin in a file that was not given.
    pub chains: u64,
    /// The first verified record.
    pub first: Option<Verified>,
    /// The last verified record.
    pub last: Option<Verified>,
    /// Whether the last record is the regular end of a process.
    pub is_stopped: bool,
    /// Whether the last file ends within a line.
    pub ends_within_line: bool,
    /// The files in the order of their records.
    pub files: Vec<PathBuf>,
    /// The first break. `None` if the chain is intact.
    #[serde(rename = "break")]
    pub first_break: Option<Break>,
}

/// A verified record.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Verified {
    /// The sequence number.
    pub seq: u64,
    /// `SEQ:MAC`, as in the log.
    #[serde(serialize_with = "as_text")]
    pub head: Head,
    /// When the record was written, as text of the record (RFC 3339).
    pub timestamp: String,
}

/// The place where a chain is broken, and the cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Break {
    /// The cause for programs.
    pub code: BreakCode,
    /// The cause for people, with the records that it concerns. It is not escaped.
    pub message: String,
    /// The file with the first record or line that does not fit. `None` if the break is in no file.
    pub file: Option<PathBuf>,
    /// The number of the line, from 1. `None` if the break is in no file.
    pub line: Option<u64>,
}

/// Why a chain is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BreakCode {
    /// A record was altered, or written with another key.
    Altered,
    /// There are no records.
    Empty,
    /// A chain begins, and the one before it has no regular end.
    EndMissing,
    /// Records or an incomplete line are missing.
    Missing,
    /// A line is not a record of the chain.
    NotChained,
    /// Records were repeated or moved.
    Order,
    /// A record of the log's head was replaced.
    Replaced,
    /// The beginning of the chain, or of the records up to a head, is missing.
    StartMissing,
    /// Records at the end are missing, which a head of the log shows.
    Truncated,
}

fn as_text<S: Serializer>(head: &Head, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(head)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GUIDE: &str = include_str!("../../../../docs/use/audit.md");

    /// J4: the guide names every field and every code of the JSON.
    #[test]
    fn the_json_is_documented() {
        let report = serde_json::to_value(Report::default()).unwrap();
        for field in report.as_object().unwrap().keys() {
            assert!(GUIDE.contains(&format!("`{field}`")), "{field}");
        }
        for (code, expected) in [
            (BreakCode::Altered, "altered"),
            (BreakCode::Empty, "empty"),
            (BreakCode::EndMissing, "end_missing"),
            (BreakCode::Missing, "missing"),
            (BreakCode::NotChained, "not_chained"),
            (BreakCode::Order, "order"),
            (BreakCode::Replaced, "replaced"),
            (BreakCode::StartMissing, "start_missing"),
            (BreakCode::Truncated, "truncated"),
        ] {
            assert_eq!(serde_json::to_value(code).unwrap(), json!(expected));
            assert!(GUIDE.contains(&format!("| `{expected}` |")), "{expected}");
        }
    }
}
