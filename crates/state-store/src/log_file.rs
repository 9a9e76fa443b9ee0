//! [`LogFile`]: a file to which records are appended, one per line.

pub(crate) mod format;

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use portcullis_files::{ReplaceError, private_options, sync_parent};

use self::format::Record;
use crate::{directory::StateDirectory, error::StateError};

/// A file is not rewritten before it has grown by this, in bytes.
const MIN_GROWTH: u64 = 1 << 20;

/// A file of records. Lines that are not records are reported and ignored: a crash can cut off one.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    /// The length of the complete lines, in bytes.
    length: u64,
    /// The length after the file was last rewritten.
    rewritten_length: u64,
    /// The file can be longer than `length`, because a write failed and its part could not be
    /// removed.
    is_torn: bool,
    replacement: Replacement,
}

/// How far the replacement of the file by a rewritten one has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replacement {
    /// It is complete, or there was none.
    Complete,
    /// The file is in use. A power failure can restore the one before it until the directory is
    /// synchronized.
    NotDurable,
    /// The path names a newer file, which could not be opened.
    NotOpened {
        /// Whether the directory is synchronized.
        is_durable: bool,
    },
}

impl Replacement {
    /// Returns the state after the newer file was opened.
    fn opened(self) -> Self {
        match self {
            Self::NotOpened { is_durable: true } => Self::Complete,
            Self::NotOpened { is_durable: false } => Self::NotDurable,
            Self::Complete | Self::NotDurable => self,
        }
    }

    /// Returns the state after the directory was synchronized; `None` if that is not necessary.
    fn synchronized(self) -> Option<Self> {
        match self {
            Self::NotDurable => Some(Self::Complete),
            Self::NotOpened { is_durable: false } => Some(Self::NotOpened { is_durable: true }),
            Self::Complete | Self::NotOpened { is_durable: true } => None,
        }
    }
}

impl LogFile {
    /// Opens a file, or creates it with the records of `first`; an empty file counts as missing.
    /// Rewrites it with the records that `needed` keeps, and returns them. Fails if the file cannot
    /// be read or written, has another format, is too large, or is damaged.
    pub(crate) fn open<R: Record>(
        directory: &StateDirectory,
        name: &str,
        first: impl FnOnce() -> Vec<R>,
        needed: impl FnOnce(Vec<R>) -> Vec<R>,
    ) -> Result<(Self, Vec<R>), StateError> {
        let path = directory.path().join(name);
        let records = needed(format::read(&path)?.unwrap_or_else(first));
        let replaced = directory
            .replace(&path, format::content(&records).as_bytes())
            .map_err(io::Error::from);
        let file = replaced
            .and_then(|()| Self::open_existing(&path))
            .map_err(StateError::io(&path))?;
        Ok((file, records))
    }

    fn open_existing(path: &Path) -> io::Result<Self> {
        let file = private_options().append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            length,
            rewritten_length: length,
            is_torn: false,
            replacement: Replacement::Complete,
        })
    }

    /// Appends records in one write. If it fails, none of them counts as written.
    pub(crate) fn append<'a, R: Record + 'a>(
        &mut self,
        records: impl IntoIterator<Item = &'a R>,
    ) -> io::Result<()> {
        if matches!(self.replacement, Replacement::NotOpened { .. }) {
            self.open_replacement()?;
        }
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        let mut lines = String::new();
        records
            .into_iter()
            .for_each(|record| format::push_line(&mut lines, record));
        match self.file.write_all(lines.as_bytes()) {
            Ok(()) => {
                self.length += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                // The part that was written is removed, also because it takes space on a full disk.
                self.is_torn = self.file.set_len(self.length).is_err();
                Err(error)
            }
        }
    }

    /// Waits until everything that was appended is on disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(synchronized) = self.replacement.synchronized() {
            sync_parent(&self.path)?;
            self.replacement = synchronized;
        }
        Ok(())
    }

    /// Rewrites the file with the records that `needed` keeps, if it has grown to twice its size
    /// since it was last rewritten. Fails if the file cannot be read or replaced. The old one stays
    /// in use, and this is tried again when it has doubled. Also fails if the new file cannot be
    /// opened or is not durable. Then [`append`](Self::append) opens it, or [`sync`](Self::sync)
    /// makes it durable, before anything else counts as written.
    pub(crate) fn compact<R: Record>(
        &mut self,
        directory: &StateDirectory,
        needed: impl FnOnce(Vec<R>) -> Vec<R>,
    ) -> Result<(), StateError> {
        if self.length < 2 * self.rewritten_length + MIN_GROWTH {
            return Ok(());
        }
        self.rewritten_length = self.length;
        let records = needed(format::read(&self.path)?.unwrap_or_default());
        let replaced = directory.replace(&self.path, format::content(&records).as_bytes());
        self.finish_replacement(replaced)
            .map_err(StateError::io(&self.path))
    }

    /// Continues with the new file after the path's file was replaced, or could not be.
    fn finish_replacement(&mut self, replaced: Result<(), ReplaceError>) -> io::Result<()> {
        if let Err(error @ ReplaceError::NotReplaced(_)) = replaced {
            return Err(error.into());
        }
        // What is appended to the old file from here on would not survive.
        self.replacement = Replacement::NotOpened {
            is_durable: replaced.is_ok(),
        };
        self.open_replacement()?;
        replaced.map_err(Into::into)
    }

    /// Continues with the file that the path names now.
    fn open_replacement(&mut self) -> io::Result<()> {
        *self = Self {
            replacement: self.replacement.opened(),
            ..Self::open_existing(&self.path)?
        };
        Ok(())
    }
}

#[cfg(test)]
impl LogFile {
    /// A file to which nothing can be written.
    pub(crate) fn read_only(path: PathBuf) -> Self {
        let file = File::open(&path).unwrap();
        Self {
            file,
            ..Self::open_existing(&path).unwrap()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use portcullis_metadata::UnixTime;
    use portcullis_session::LastUse;

    use super::*;

    fn used(session: u8) -> LastUse {
        LastUse {
            session: [session; 16],
            time: UnixTime::from_secs(session.into()),
        }
    }

    fn open(directory: &StateDirectory) -> (LogFile, Vec<LastUse>) {
        LogFile::open(directory, "log", Vec::new, |records| records).unwrap()
    }

    /// E12: what was appended is read after a restart. A line that a crash has cut off is ignored.
    #[test]
    fn records_are_read_again() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let (mut log, records) = open(&directory);
        assert_eq!(records, []);

        log.append(&[used(1), used(2)]).unwrap();
        log.append(&[used(3)]).unwrap();
        log.sync().unwrap();
        let path = directory.path().join("log");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(log.length, text.len() as u64);

        for cut in 0..32 {
            fs::write(&path, &text[..text.len() - cut]).unwrap();
            let expected = if cut < 2 {
                vec![used(1), used(2), used(3)]
            } else {
                vec![used(1), used(2)]
            };
            assert_eq!(open(&directory).1, expected, "{cut}");
        }
        fs::write(
            &path,
            text.replace("\n\n", "\n")
                .replacen('\n', "\nno record\n\n\u{0}", 1),
        )
        .unwrap();
        assert_eq!(open(&directory).1, [used(2), used(3)]);
    }

    /// E12: a file of another version is an error, and an empty one, which a crash can leave, is
    /// not.
    #[test]
    fn other_formats_are_errors() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let path = directory.path().join("log");
        for (text, expected) in [
            ("", None),
            ("portcullis session uses, form 2\n", Some("state.format")),
        ] {
            fs::write(&path, text).unwrap();
            let opened = LogFile::open::<LastUse>(&directory, "log", Vec::new, |records| records);
            assert_eq!(opened.err().map(|error| error.code()), expected, "{text}");
        }
    }

    /// E12: a file that grows is rewritten with what it needs.
    #[test]
    fn grown_files_are_rewritten() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let (mut log, _) = open(&directory);
        let latest = |records: Vec<LastUse>| vec![*records.last().unwrap()];
        for round in 0..200 {
            log.append(&[used(round); 1000]).unwrap();
            log.compact(&directory, latest).unwrap();
        }
        assert!(log.length < 2 * MIN_GROWTH, "{}", log.length);
        log.append(&[used(255)]).unwrap();
        assert_eq!(open(&directory).1.last(), Some(&used(255)));
    }

    /// E12: a file that was replaced is used even if its directory could not be synchronized, which
    /// the next synchronization makes up for.
    #[test]
    fn a_new_file_that_is_not_durable_is_used() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let (mut log, _) = open(&directory);
        directory
            .replace(&log.path, format::content(&[used(1)]).as_bytes())
            .unwrap();
        let not_durable = Err(ReplaceError::NotDurable(io::ErrorKind::StorageFull.into()));
        assert_eq!(
            log.finish_replacement(not_durable).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        log.append(&[used(2)]).unwrap();
        assert_eq!(log.replacement, Replacement::NotDurable);
        log.sync().unwrap();
        assert_eq!(log.replacement, Replacement::Complete);
        assert_eq!(open(&directory).1, [used(1), used(2)]);
    }

    /// E12: nothing counts as written while the new file cannot be opened.
    #[test]
    fn a_superseded_file_takes_no_records() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let (mut log, _) = open(&directory);
        fs::remove_file(&log.path).unwrap();
        assert!(log.finish_replacement(Ok(())).is_err());
        assert!(log.append(&[used(1)]).is_err());
        fs::write(&log.path, format::content(&[used(2)])).unwrap();
        log.append(&[used(3)]).unwrap();
        log.sync().unwrap();
        assert_eq!(open(&directory).1, [used(2), used(3)]);
    }

    /// E12: a new file that could neither be opened nor made durable is opened by the next append.
    /// The directory is synchronized at the next synchronization, before or after that.
    #[test]
    fn a_superseded_file_becomes_durable() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        for sync_first in [true, false] {
            let (mut log, _) = open(&directory);
            fs::remove_file(&log.path).unwrap();
            let not_durable = Err(ReplaceError::NotDurable(io::ErrorKind::StorageFull.into()));
            assert!(log.finish_replacement(not_durable).is_err());
            assert_eq!(
                log.replacement,
                Replacement::NotOpened { is_durable: false }
            );
            if sync_first {
                log.sync().unwrap();
                assert_eq!(log.replacement, Replacement::NotOpened { is_durable: true });
            }
            fs::write(&log.path, format::content(&[used(1)])).unwrap();
            log.append(&[used(2)]).unwrap();
            assert_eq!(
                log.replacement,
                if sync_first {
                    Replacement::Complete
                } else {
                    Replacement::NotDurable
                }
            );
            log.sync().unwrap();
            assert_eq!(
                (log.replacement, open(&directory).1),
                (Replacement::Complete, vec![used(1), used(2)])
            );
        }
    }

    /// E12: a file that was not replaced stays in use.
    #[test]
    fn a_file_that_was_not_replaced_stays_in_use() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let (mut log, _) = open(&directory);
        let not_replaced = Err(ReplaceError::NotReplaced(io::ErrorKind::StorageFull.into()));
        assert!(log.finish_replacement(not_replaced).is_err());
        log.append(&[used(1)]).unwrap();
        assert_eq!(open(&directory).1, [used(1)]);
    }

    /// E12: the part of a failed write is removed before the next one, so that no later removal
    /// cuts off a record.
    #[test]
    fn a_torn_line_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let (mut log, _) = open(&directory);
        log.file.write_all(b"AAAA").unwrap();
        log.is_torn = true;
        log.append(&[used(1)]).unwrap();
        assert_eq!(log.length, fs::metadata(&log.path).unwrap().len());
        assert_eq!(open(&directory).1, [used(1)]);
    }
}
