use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
    time::UNIX_EPOCH,
};

use portcullis_metadata::UnixTime;

use crate::chain::{ChainedLine, Head};

/// The part of a file that is searched for the last record, in bytes. No record is as long.
const TAIL: u64 = 1 << 20;
/// The length of the beginning of a record, up to the end of its time.
const FIRST_TIME: usize = "{'timestamp':'2027-01-15T08:00:00.000Z'".len();

/// The end of an audit file: the head of the chain, and an incomplete last line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The head of the last record of a chain.
    pub(super) head: Option<Head>,
    /// The length of the last line if it is incomplete, after a full disk or a crash.
    pub(super) torn: Option<u64>,
    /// Whether there are complete lines, and none of a chain.
    pub(super) is_unchained: bool,
    /// Whether the file does not end with a newline.
    pub(super) needs_newline: bool,
}

impl Tail {
    /// Reads the end of a file. That of a pipe or a device is empty. Fails when the file cannot be
    /// read.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(Self::default());
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        let (complete, last) = bytes.split_at(
            bytes
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1),
        );
        // A line that lacks only its newline is complete.
        let last_head = ChainedLine::parse(last).map(|line| line.head);
        let of_complete = || {
            complete
                .rsplit(|byte| *byte == b'\n')
                .find_map(ChainedLine::parse)
                .map(|line| line.head)
        };
        let head = last_head.or_else(of_complete);
        Self {
            head,
            is_unchained: head.is_none() && complete.iter().any(|byte| *byte != b'\n'),
            torn: (!last.is_empty() && last_head.is_none()).then_some(last.len() as u64),
            needs_newline: !last.is_empty(),
        }
    }
}

/// Returns the time of the first record of a file.
pub(super) fn first_time(path: &Path) -> Option<UnixTime> {
    let mut bytes = [0; FIRST_TIME];
    File::open(path).ok()?.read_exact(&mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let time = text.strip_prefix("{\"timestamp\":\"")?.split_once('"')?.0;
    let time = humantime::parse_rfc3339(time)
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    Some(UnixTime::from_millis(u64::try_from(time.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{Chain, ChainKeys};

    fn chained(records: usize) -> (Vec<u8>, Head) {
        let keys = ChainKeys::parse(&"k".repeat(32)).unwrap();
        let mut chain = Chain::new(keys.current().cloned(), Head::default());
        let mut out = Vec::new();
        (0..records).for_each(|_| {
            chain.append(b"{\"timestamp\":\"2027-01-15T08:00:00.000Z\"}\n", &mut out)
        });
        (out, chain.head())
    }

    /// J4: the chain continues from the last complete record, wherever a crash has cut off the
    /// file.
    #[test]
    fn the_last_complete_record_is_found() {
        let ((one, first), (two, second)) = (chained(1), chained(2));
        assert_eq!(
            Tail::of(&two),
            Tail {
                head: Some(second),
                ..Tail::default()
            }
        );
        let uncut = two.len() - 1;
        assert_eq!(
            Tail::of(&two[..uncut]),
            Tail {
                head: Some(second),
                needs_newline: true,
                ..Tail::default()
            }
        );
        for end in one.len() + 1..uncut {
            let torn = Some((end - one.len()) as u64);
            assert_eq!(
                Tail::of(&two[..end]),
                Tail {
                    head: Some(first),
                    torn,
                    needs_newline: true,
                    is_unchained: false
                },
                "{end}"
            );
        }
        assert_eq!(
            Tail::of(b"no record\n"),
            Tail {
                is_unchained: true,
                ..Tail::default()
            }
        );
        assert!(
            !Tail::of(&one[..9]).is_unchained,
            "the first record is cut off"
        );
        assert_eq!(
            Tail::of(&[&one[..], b"no record\n"].concat()).head,
            Some(first)
        );
    }

    #[test]
    fn the_time_of_the_first_record_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(first_time(file.path()), None);
        fs::write(file.path(), chained(2).0).unwrap();
        assert_eq!(
            first_time(file.path()),
            Some(UnixTime::from_secs(1_800_000_000))
        );
        fs::write(file.path(), "x".repeat(99)).unwrap();
        assert_eq!(first_time(file.path()), None);
    }
}
