use std::path::Path;

use serde::Deserialize;

use super::{
    lines::Line,
    report::{Break, BreakCode, Report, Verified},
};
use crate::chain::{ChainKey, ChainKeys, ChainedLine, Head};

/// The events that begin a file or a process.
const BEGINNINGS: [&str; 2] = ["audit.continued", "audit.started"];

/// Verifies the lines of files in the order of the chain.
pub(super) struct Verifier<'a> {
    keys: &'a ChainKeys,
    key: Option<&'a ChainKey>,
    /// The head of the last verified record.
    head: Option<Head>,
    /// The heads that were not yet found.
    missing: Vec<Head>,
    /// The last line that was read.
    last: Option<Place<'a>>,
    /// A line that is not a record. One of the next records must explain it.
    unexplained: Option<Unexplained<'a>>,
    report: Report,
}

#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a Path,
    line: u64,
}

struct Unexplained<'a> {
    place: Place<'a>,
    bytes: u64,
    has_newline: bool,
}

/// The members of a record that verification needs. Missing ones are empty, and so are all of a
/// line that is no such object.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Members {
    #[serde(default)]
    pub(super) timestamp: String,
    #[serde(default)]
    event: String,
    /// The lost records of `audit.lost`; the sum of all in `audit.stopped`.
    #[serde(default, rename = "audit.lost")]
    lost: u64,
    /// The number of equal rejections of `rejections`.
    #[serde(default)]
    count: u64,
    /// The length of the line that `audit.torn` explains.
    #[serde(default, rename = "audit.bytes")]
    torn_bytes: u64,
    /// Whether `audit.started` begins a chain because the former one could not be continued.
    #[serde(default, rename = "audit.new_chain")]
    pub(super) begins_new_chain: bool,
    /// The head that `audit.continued` continues.
    #[serde(default, rename = "audit.previous")]
    previous: String,
}

impl Members {
    pub(super) fn parse(line: &[u8]) -> Self {
        serde_json::from_slice(line).unwrap_or_default()
    }
}

impl<'a> Verifier<'a> {
    pub(super) fn new(keys: &'a ChainKeys, heads: &[Head]) -> Self {
        Self {
            keys,
            key: None,
            head: None,
            missing: heads.to_vec(),
            last: None,
            unexplained: None,
            report: Report::default(),
        }
    }

    /// Verifies a line. Fails when the chain is broken at this line or before it.
    pub(super) fn line(&mut self, file: &'a Path, line: &Line<'_>) -> Result<(), Break> {
        let place = Place {
            file,
            line: line.number,
        };
        let Some(chained) = ChainedLine::parse(line.bytes) else {
            if let Some(earlier) = &self.unexplained {
                return Err(earlier.not_chained());
            }
            let bytes = line.bytes.len() as u64;
            let has_newline = line.has_newline;
            self.unexplained = Some(Unexplained {
                place,
                bytes,
                has_newline,
            });
            self.last = Some(place);
            return Ok(());
        };
        let members = Members::parse(line.bytes);
        let verified = self.verify(place, &chained, &members);
        verified.map_err(|cause| {
            self.unexplained
                .as_ref()
                .map_or(cause, Unexplained::not_chained)
        })?;
        self.explain(&members)?;
        self.count(&chained, members);
        self.last = Some(place);
        Ok(())
    }

    /// Verifies that the record follows the one before it, or begins a chain.
    fn verify(
        &mut self,
        place: Place<'_>,
        line: &ChainedLine<'_>,
        members: &Members,
    ) -> Result<(), Break> {
        let seq = line.head.seq;
        let previous = match self.head {
            Some(head) => head,
            None if seq == 1 => Head::default(),
            // The first file continues another one that is not given.
            None => members
                .previous
                .parse()
                .ok()
                .filter(|_| members.event == "audit.continued")
                .ok_or_else(|| {
                    place.broken(
                        BreakCode::StartMissing,
                        format!(
                            "record {seq} continues a chain; name the file before this one, too"
                        ),
                    )
                })?,
        };
        if let Some(key) = self.key_for(line, &previous, members) {
            self.key = Some(key);
            self.report.chains = self.report.chains.max(1);
            return Ok(());
        }
        let begins_chain = self
            .keys
            .iter()
            .find(|key| line.follows(&Head::default(), key));
        if let Some(key) = begins_chain.filter(|_| self.head.is_some()) {
            if !self.report.is_stopped {
                return Err(place.broken(
                    BreakCode::EndMissing,
                    format!(
                        "another chain begins, but the chain before it ends at record {} without audit.stopped",
                        previous.seq
                    ),
                ));
            }
            self.key = Some(key);
            self.report.chains += 1;
            return Ok(());
        }
        Err(self.not_following(place, &previous, seq))
    }

    /// Returns the break at a record that does not follow the previous one.
    fn not_following(&self, place: Place<'_>, previous: &Head, seq: u64) -> Break {
        match previous.seq.checked_add(1) {
            Some(expected) if seq > expected && seq - expected == 1 => {
                place.broken(BreakCode::Missing, format!("record {expected} is missing"))
            }
            Some(expected) if seq > expected => place.broken(
                BreakCode::Missing,
                format!("the records {expected} to {} are missing", seq - 1),
            ),
            Some(expected) if seq < expected => place.broken(
                BreakCode::Order,
                format!(
                    "record {seq} follows record {}; records were repeated or moved",
                    previous.seq
                ),
            ),
            _ if self.head.is_none() => place.broken(
                BreakCode::Altered,
                format!("record {seq} was altered, or was written with another key"),
            ),
            _ => place.broken(BreakCode::Altered, format!("record {seq} was altered")),
        }
    }

    /// Returns the key that made this line. A process may begin to use another one.
    fn key_for(
        &self,
        line: &ChainedLine<'_>,
        previous: &Head,
        members: &Members,
    ) -> Option<&'a ChainKey> {
        if let Some(key) = self.key.filter(|key| line.follows(previous, key)) {
            return Some(key);
        }
        let may_change = self.key.is_none() || BEGINNINGS.contains(&members.event.as_str());
        self.keys
            .iter()
            .find(|key| may_change && line.follows(previous, key))
    }

    /// Compares an unexplained line with the record `audit.torn`. Only the records that begin a
    /// file or a process come between. The line is at the end of a file that is not given if these
    /// records are the first ones.
    fn explain(&mut self, members: &Members) -> Result<(), Break> {
        match self.unexplained.take() {
            Some(line) if members.event == "audit.torn" && members.torn_bytes == line.bytes => {
                self.report.torn += 1
            }
            Some(line) if BEGINNINGS.contains(&members.event.as_str()) => {
                self.unexplained = Some(line)
            }
            Some(line) => return Err(line.not_chained()),
            None if members.event == "audit.torn"
                && self.report.records > BEGINNINGS.len() as u64 =>
            {
                return Err(self.place_of_last().broken(
                    BreakCode::Missing,
                    format!(
                        "an incomplete line of {} bytes is missing after this line",
                        members.torn_bytes
                    ),
                ));
            }
            None => {}
        }
        Ok(())
    }

    fn count(&mut self, line: &ChainedLine<'_>, members: Members) {
        let record = Verified {
            seq: line.head.seq,
            head: line.head,
            timestamp: members.timestamp,
        };
        self.missing.retain(|head| *head != line.head);
        self.head = Some(line.head);
        self.report.records += 1;
        self.report.is_stopped = members.event == "audit.stopped";
        if members.event == "audit.lost" {
            self.report.lost = self.report.lost.saturating_add(members.lost);
        }
        if members.event == "rejections" {
            self.report.summed = self.report.summed.saturating_add(members.count);
        }
        self.report.first.get_or_insert_with(|| record.clone());
        self.report.last = Some(record);
    }

    /// Returns the report on a broken chain.
    pub(super) fn broken(mut self, cause: Break) -> Report {
        self.report.first_break = Some(cause);
        self.report
    }

    /// Returns the report at the end of all files.
    pub(super) fn end(mut self) -> Report {
        let cause = match &self.unexplained {
            // The trail may be in use, or its process was killed.
            Some(line) if !line.has_newline && self.head.is_some() => {
                self.report.ends_within_line = true;
                None
            }
            Some(line) => Some(line.not_chained()),
            None if self.head.is_none() => Some(
                self.place_of_last()
                    .broken(BreakCode::Empty, "there are no records".to_owned()),
            ),
            None => None,
        };
        self.report.first_break = cause.or_else(|| self.missing_head());
        self.report
    }

    /// Returns the break that a head from the log shows.
    fn missing_head(&self) -> Option<Break> {
        let missing = self.missing.first()?;
        let last = self.report.last.as_ref()?;
        let first = self.report.first.as_ref().map_or(0, |first| first.seq);
        let place = self.place_of_last();
        Some(if missing.seq > last.seq {
            place.broken(
                BreakCode::Truncated,
                format!(
                    "the log has the head {}, but the last record is {}; the end was cut off",
                    missing.seq, last.seq
                ),
            )
        } else if missing.seq < first && self.report.chains == 1 {
            Break {
                code: BreakCode::StartMissing,
                message: format!(
                    "the head {} is of a record before the first one, {first}",
                    missing.seq
                ),
                file: None,
                line: None,
            }
        } else {
            Break {
                code: BreakCode::Replaced,
                message: format!(
                    "no record {} has the MAC that the log has; records were replaced",
                    missing.seq
                ),
                file: None,
                line: None,
            }
        })
    }

    fn place_of_last(&self) -> Place<'a> {
        self.last.unwrap_or(Place {
            file: Path::new(""),
            line: 0,
        })
    }
}

impl Unexplained<'_> {
    fn not_chained(&self) -> Break {
        self.place.broken(
            BreakCode::NotChained,
            "the line is not a record of the chain".to_owned(),
        )
    }
}

impl Place<'_> {
    fn broken(&self, code: BreakCode, message: String) -> Break {
        let is_known = self.line > 0;
        Break {
            code,
            message,
            file: is_known.then(|| self.file.to_owned()),
            line: is_known.then_some(self.line),
        }
    }
}
