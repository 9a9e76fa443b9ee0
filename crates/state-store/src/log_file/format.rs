//! The format of a [`LogFile`](super::LogFile): a header, and one record per line.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_session::{LastUse, SessionEnd};

use crate::error::StateError;

/// The maximum size of a file, in bytes. A store with all its ends needs a third of it.
const MAX_FILE: u64 = 256 << 20;

/// A record in a file.
pub(crate) trait Record: Sized {
    /// The first line of the file.
    const HEADER: &'static str;
    /// Whether a line that cannot be read makes the file unusable, unless no record follows it. A
    /// crash can only cut off the end.
    const IS_REQUIRED: bool;

    /// Returns the bytes of a line, which are written in base64url.
    fn encode(&self) -> impl AsRef<[u8]>;

    /// Returns the record with these bytes; `None` if they are not those of a record.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl Record for SessionEnd {
    const HEADER: &'static str = "portcullis session ends, form 1";
    // The session of a lost end would continue.
    const IS_REQUIRED: bool = true;

    fn encode(&self) -> impl AsRef<[u8]> {
        Self::encode(self)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes)
    }
}

impl Record for LastUse {
    const HEADER: &'static str = "portcullis session uses, form 1";
    const IS_REQUIRED: bool = false;

    fn encode(&self) -> impl AsRef<[u8]> {
        Self::encode(self)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes)
    }
}

/// Appends a record as one line.
pub(super) fn push_line(lines: &mut String, record: &impl Record) {
    URL_SAFE_NO_PAD.encode_string(record.encode(), lines);
    lines.push('\n');
}

/// Reads the records of a file; `None` if it is missing or empty. Lines that are not records are
/// reported and left out. Fails if the file cannot be read, has another format, is larger than
/// [`MAX_FILE`], or lacks a [required](Record::IS_REQUIRED) record.
pub(crate) fn read<R: Record>(path: &Path) -> Result<Option<Vec<R>>, StateError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StateError::io(path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(StateError::io(path))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(StateError::TooLarge {
            path: path.to_owned(),
        });
    }
    let Some(lines) = bytes
        .strip_prefix(R::HEADER.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"\n"))
    else {
        return if bytes.is_empty() {
            Ok(None)
        } else {
            Err(StateError::Format {
                path: path.to_owned(),
            })
        };
    };
    let Parsed {
        records,
        unreadable,
        is_damaged,
    } = parse(lines);
    if R::IS_REQUIRED && is_damaged {
        return Err(StateError::Damaged {
            path: path.to_owned(),
        });
    }
    if unreadable > 0 {
        tracing::warn!(
            state.file = %path.display(), state.unreadable = unreadable,
            "lines of the state directory cannot be read and are ignored; a crash can cut off one"
        );
    }
    Ok(Some(records))
}

/// The lines of a file after its header.
struct Parsed<R> {
    records: Vec<R>,
    /// The number of lines that are neither empty nor a record.
    unreadable: usize,
    /// Whether a record follows one of them.
    is_damaged: bool,
}

/// Parses the lines after the header.
fn parse<R: Record>(lines: &[u8]) -> Parsed<R> {
    let mut parsed = Parsed {
        records: Vec::new(),
        unreadable: 0,
        is_damaged: false,
    };
    for line in lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        match URL_SAFE_NO_PAD
            .decode(line)
            .ok()
            .and_then(|bytes| R::decode(&bytes))
        {
            Some(record) => {
                parsed.is_damaged |= parsed.unreadable > 0;
                parsed.records.push(record);
            }
            None => parsed.unreadable += 1,
        }
    }
    parsed
}

/// Returns the content of a file with these records.
pub(super) fn content<R: Record>(records: &[R]) -> String {
    let mut content = format!("{}\n", R::HEADER);
    records
        .iter()
        .for_each(|record| push_line(&mut content, record));
    content
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::UnixTime;

    use super::*;

    /// E12: lines that are not records are counted, to be reported.
    #[test]
    fn unreadable_lines_are_counted() {
        struct Case {
            name: &'static str,
            text: String,
            records: usize,
            unreadable: usize,
            is_damaged: bool,
        }

        let mut line = String::new();
        push_line(
            &mut line,
            &LastUse {
                session: [1; 16],
                time: UnixTime::from_secs(1),
            },
        );
        let cases = [
            Case {
                name: "nothing",
                text: String::new(),
                records: 0,
                unreadable: 0,
                is_damaged: false,
            },
            Case {
                name: "records and empty lines",
                text: format!("{line}\n{line}"),
                records: 2,
                unreadable: 0,
                is_damaged: false,
            },
            Case {
                name: "a line that is cut off",
                text: format!("{line}{}", &line[..9]),
                records: 1,
                unreadable: 1,
                is_damaged: false,
            },
            Case {
                name: "other text",
                text: format!("no record\n{line}\u{0}\n"),
                records: 1,
                unreadable: 2,
                is_damaged: true,
            },
        ];
        for Case {
            name,
            text,
            records,
            unreadable,
            is_damaged,
        } in cases
        {
            let parsed = parse::<LastUse>(text.as_bytes());
            assert_eq!(parsed.records.len(), records, "{name}");
            assert_eq!(parsed.unreadable, unreadable, "{name}");
            assert_eq!(parsed.is_damaged, is_damaged, "{name}");
        }
    }
}
