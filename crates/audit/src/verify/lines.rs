use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use super::ReadError;

/// The maximum length of a line in bytes. No record is as long.
const MAX_LINE: u64 = 1 << 20;

/// A line of a file.
pub(super) struct Line<'a> {
    /// The number, from 1.
    pub(super) number: u64,
    /// The bytes without the newline.
    pub(super) bytes: &'a [u8],
    /// `false` for an incomplete last line, and for all parts of a long one but the last.
    pub(super) has_newline: bool,
}

/// The lines of an audit file, in bounded memory.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Opens a file. Fails when it cannot be read, or is a directory.
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        let open = || -> io::Result<File> {
            let file = File::open(path)?;
            if file.metadata()?.is_dir() {
                Err(io::ErrorKind::IsADirectory.into())
            } else {
                Ok(file)
            }
        };
        let file = open().map_err(|error| ReadError::new(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::new(file),
            buffer: Vec::new(),
            number: 0,
        })
    }

    /// Returns the next line. A longer one than any record is returned in parts, which are not
    /// records. Fails when the file cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        self.buffer.clear();
        let read = self
            .reader
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut self.buffer);
        if read.map_err(|error| ReadError::new(&self.path, error))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let bytes = self.buffer.strip_suffix(b"\n");
        let has_newline = bytes.is_some();
        Ok(Some(Line {
            number: self.number,
            bytes: bytes.unwrap_or(&self.buffer),
            has_newline,
        }))
    }
}
