//! The sinks of the trail: standard output, or a file that can be rotated.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use rustix::{fs::OFlags, io::Errno};

use crate::config::AuditTarget;

/// The destination of the lines.
pub(super) trait Sink {
    /// Writes at least one of these bytes and returns the number of written bytes.
    ///
    /// # Errors
    /// Fails when the sink accepts no bytes now.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Reopens the target, for rotation.
    ///
    /// # Errors
    /// Fails when the target cannot be reopened. The old one remains in use.
    fn reopen(&mut self) -> io::Result<()>;
}

/// The sinks that can be configured.
pub(super) enum Target {
    Stdout(File),
    File {
        path: PathBuf,
        /// `None` while a named pipe has no reader.
        file: Option<Opened>,
    },
}

/// An open file.
pub(super) struct Opened {
    file: File,
    /// Whether the last line is incomplete, after a full disk or a crash.
    torn: bool,
}

impl Target {
    /// # Errors
    /// Fails when the target cannot be written. A named pipe without a reader is opened later.
    pub(super) fn open(target: &AuditTarget) -> anyhow::Result<Self> {
        let path = match target {
            AuditTarget::Stdout => {
                let stdout = io::stdout().as_fd().try_clone_to_owned().context("standard output cannot be used")?;
                return Ok(Self::Stdout(stdout.into()));
            }
            AuditTarget::File(path) => path.clone(),
        };
        let file = match Opened::new(&path) {
            Ok(opened) => Some(opened),
            Err(error) if has_no_reader(&error) => {
                tracing::warn!(audit.file = %path.display(), "the audit trail waits for a reader of this pipe");
                None
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "{} cannot be written to; make its folder writable for this process, or name another file",
                        path.display()
                    )
                });
            }
        };
        if let Some(mode) = file.as_ref().and_then(Opened::too_open) {
            tracing::warn!(
                audit.file = %path.display(), audit.mode = format!("{mode:o}"),
                "other users than its owner can read the audit trail; set its mode to 600"
            );
        }
        Ok(Self::File { path, file })
    }
}

impl Sink for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (path, file) = match self {
            Self::Stdout(stdout) => return stdout.write(bytes),
            Self::File { path, file } => (path, file),
        };
        let opened = match file {
            Some(opened) => opened,
            None => file.insert(Opened::new(path)?),
        };
        let written = opened.write(bytes);
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            *file = None;
        }
        written
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Self::File { path, file } = self {
            *file = Some(Opened::new(path)?);
        }
        Ok(())
    }
}

impl Opened {
    /// Opens a file for appending. A new file is readable only by its owner. It never waits: a named pipe without a
    /// reader is an error.
    fn new(path: &Path) -> io::Result<Self> {
        let no_wait = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_wait).open(path)?;
        Ok(Self { file, torn: is_torn(path).unwrap_or(false) })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.torn {
            self.file.write_all(b"\n")?;
            self.torn = false;
        }
        self.file.write(bytes)
    }

    /// Returns the file's mode if other users than its owner can access it.
    fn too_open(&self) -> Option<u32> {
        let metadata = self.file.metadata().ok().filter(fs::Metadata::is_file)?;
        let mode = metadata.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
}

/// Returns whether a file ends within a line.
fn is_torn(path: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

/// Checks that a file can be opened, as far as possible without creating it.
///
/// # Errors
/// Fails when the file cannot be opened.
pub(crate) fn dry_run(path: &Path) -> anyhow::Result<()> {
    let fix = || format!("{} cannot be written to; name a file in a folder that exists", path.display());
    match fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_fifo() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop).with_context(fix),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            fs::read_dir(folder).map(drop).with_context(fix)
        }
        Err(error) => Err(error).with_context(fix),
    }
}
