//! The sinks of the trail: standard output, or a file that can be rotated.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use portcullis_files::directory_of;
use portcullis_metadata::UnixTime;
use rustix::{
    fs::{Access, OFlags, access},
    io::Errno,
};

use crate::{
    chain::Head,
    error::{ChainError, FileError, StartError},
    rotation::{Rotation, newest_rotated},
    settings::AuditTarget,
    tail::{Tail, first_time},
};

/// The destination of the lines.
pub(super) trait Sink {
    /// Writes at least one of these bytes and returns the number of written bytes. Fails when the
    /// sink accepts no bytes now.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Reopens the target, after another program has renamed the file. Fails when the target cannot
    /// be reopened. The old one remains in use.
    fn reopen(&mut self) -> io::Result<Opening>;

    /// Returns the number of bytes after which the file must be rotated, or 0 if it must be rotated
    /// now.
    fn bytes_until_rotation(&self, now: UnixTime) -> u64;

    /// Renames the file and begins another one. The old one remains in use until this succeeds.
    /// Fails when the file cannot be renamed, or another one cannot be created.
    fn rotate(&mut self, now: UnixTime) -> io::Result<Opening>;
}

/// The state of a target that was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opening {
    /// Whether the target is a file with records.
    pub(super) has_records: bool,
    /// The length of the file's last line if it is incomplete.
    pub(super) torn: Option<u64>,
    /// The head of the chain that the file, or the one rotated before it, ends with.
    pub(super) head: Option<Head>,
    /// Whether the former chain cannot be continued, and the settings permit another one.
    pub(super) begins_new_chain: bool,
}

/// The sinks that can be configured.
pub(super) enum Target {
    Stdout(File),
    File {
        path: PathBuf,
        rotation: Rotation,
        /// `None` while a named pipe has no reader.
        file: Option<Opened>,
    },
}

/// An open file.
pub(super) struct Opened {
    file: File,
    /// Whether the last line is incomplete, after a full disk or a crash.
    needs_newline: bool,
    /// The number of bytes in the file.
    length: u64,
    /// The time of the first record.
    begun: Option<UnixTime>,
}

impl Target {
    /// Opens the target of the trail. Fails when the target cannot be written. A named pipe without
    /// a reader is opened later.
    pub(super) fn open(
        target: &AuditTarget,
        rotation: Rotation,
    ) -> Result<(Self, Opening), StartError> {
        let path = match target {
            AuditTarget::Stdout => {
                let stdout = io::stdout()
                    .as_fd()
                    .try_clone_to_owned()
                    .map_err(StartError::Stdout)?;
                return Ok((Self::Stdout(stdout.into()), Opening::default()));
            }
            AuditTarget::File(path) => path.clone(),
        };
        let (file, mut opening) = match Opened::new(&path) {
            Ok((opened, opening)) => (Some(opened), opening),
            Err(error) if has_no_reader(&error) => {
                tracing::warn!(audit.file = %path.display(), "the audit trail waits for a reader of this pipe");
                (None, Opening::default())
            }
            Err(source) => return Err(StartError::File { path, source }),
        };
        if let Some(mode) = file.as_ref().and_then(Opened::too_open) {
            tracing::warn!(
                audit.file = %path.display(), audit.mode = format!("{mode:o}"),
                "other users than its owner can read the audit trail; set its mode to 600"
            );
        }
        // The process ended between the rotation and the first record of the new file.
        if !opening.has_records && file.as_ref().is_some_and(Opened::is_regular) {
            opening.head = head_of_newest_rotated(&path).unwrap_or_else(|error| {
                let path = path.display();
                tracing::error!(audit.file = %path, error = %error, "the rotated audit files cannot be read; a new chain begins");
                None
            });
        }
        Ok((
            Self::File {
                path,
                rotation,
                file,
            },
            opening,
        ))
    }
}

impl Sink for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (path, file) = match self {
            Self::Stdout(stdout) => return stdout.write(bytes),
            Self::File { path, file, .. } => (path, file),
        };
        let opened = match file {
            Some(opened) => opened,
            None => file.insert(Opened::new(path)?.0),
        };
        let written = opened.write(bytes);
        if written
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        {
            *file = None;
        }
        written
    }

    fn reopen(&mut self) -> io::Result<Opening> {
        let Self::File { path, file, .. } = self else {
            return Ok(Opening {
                has_records: true,
                ..Opening::default()
            });
        };
        let (opened, opening) = Opened::new(path)?;
        *file = Some(opened);
        Ok(opening)
    }

    fn bytes_until_rotation(&self, now: UnixTime) -> u64 {
        match self {
            Self::File {
                rotation,
                file: Some(file),
                ..
            } => rotation.bytes_left(file.length, file.begun, now),
            _ => u64::MAX,
        }
    }

    fn rotate(&mut self, now: UnixTime) -> io::Result<Opening> {
        let Self::File {
            path,
            rotation,
            file,
        } = self
        else {
            return Ok(Opening::default());
        };
        let rotated = rotation.rename(path, now)?;
        let (mut opened, opening) = match Opened::new(path) {
            Ok(opened) => opened,
            Err(error) => {
                // If that fails, too, the trail continues in the renamed file.
                fs::rename(&rotated, path)?;
                return Err(error);
            }
        };
        opened.begun = Some(now);
        *file = Some(opened);
        tracing::info!(audit.file = %rotated.display(), "the audit file was rotated");
        rotation.remove_old(path);
        Ok(opening)
    }
}

impl Opened {
    /// Opens a file for appending, and reads its end. A new file is readable only by its owner. It
    /// never waits: a named pipe without a reader is an error.
    fn new(path: &Path) -> io::Result<(Self, Opening)> {
        let no_wait = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(no_wait)
            .open(path)?;
        let metadata = file.metadata()?;
        let length = if metadata.is_file() {
            metadata.len()
        } else {
            0
        };
        let Tail {
            head,
            torn,
            needs_newline,
            ..
        } = Tail::read(path)?;
        let begun = if length > 0 { first_time(path) } else { None };
        Ok((
            Self {
                file,
                needs_newline,
                length,
                begun,
            },
            Opening {
                has_records: length > 0,
                torn,
                head,
                begins_new_chain: false,
            },
        ))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.needs_newline {
            self.file.write_all(b"\n")?;
            self.needs_newline = false;
            self.length += 1;
        }
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn is_regular(&self) -> bool {
        self.file
            .metadata()
            .is_ok_and(|metadata| metadata.is_file())
    }

    /// Returns the file's mode if other users than its owner can access it.
    fn too_open(&self) -> Option<u32> {
        let metadata = self.file.metadata().ok().filter(fs::Metadata::is_file)?;
        let mode = metadata.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
}

/// Returns the head of the chain that the last rotated file ends with.
fn head_of_newest_rotated(path: &Path) -> io::Result<Option<Head>> {
    let newest = newest_rotated(path)?;
    newest.map_or(Ok(None), |newest| Tail::read(&newest).map(|tail| tail.head))
}

fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

/// Checks that the chain of a target can be continued: its file, and the newest rotated one, can be
/// read, and the file has records of a chain if it has any. A target that does not exist, or is not
/// a file, begins a chain.
///
/// Does not verify the chain; [`verify::files`](crate::verify::files) does.
///
/// # Errors
/// Fails otherwise.
pub fn check_chain(target: &AuditTarget) -> Result<(), ChainError> {
    let AuditTarget::File(path) = target else {
        return Ok(());
    };
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(());
    }
    let tail = match Tail::read(path) {
        Ok(tail) => tail,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Tail::default(),
        Err(error) => {
            return Err(ChainError::Unreadable {
                path: path.clone(),
                error,
            });
        }
    };
    if tail.is_unchained {
        return Err(ChainError::NotChained { path: path.clone() });
    }
    if tail.head.is_some() {
        return Ok(());
    }
    head_of_newest_rotated(path)
        .map(drop)
        .map_err(|error| ChainError::RotatedUnreadable {
            path: path.clone(),
            error,
        })
}

/// Checks that a file can be read and written or, if it does not exist, that its folder can be
/// written. If `must_rotate` is true, checks also that it can be rotated. Creates nothing.
///
/// # Errors
/// Fails when the file cannot be opened or created, or cannot be rotated.
pub fn check_file(path: &Path, must_rotate: bool) -> Result<(), FileError> {
    let unopenable = |source| FileError::Unopenable {
        path: path.to_owned(),
        source,
    };
    match fs::metadata(path) {
        Ok(metadata) => {
            if must_rotate {
                check_rotation(path, &metadata)?;
            }
            if metadata.file_type().is_fifo() {
                return Ok(());
            }
            // A file is read, too, because its chain continues. A device may allow only writing.
            OpenOptions::new()
                .append(true)
                .read(metadata.is_file())
                .open(path)
                .map(drop)
                .map_err(unopenable)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            can_write(directory_of(path)).map_err(unopenable)
        }
        Err(error) => Err(unopenable(error)),
    }
}

/// Checks that an existing file can be renamed, and another one created in its place.
fn check_rotation(path: &Path, metadata: &fs::Metadata) -> Result<(), FileError> {
    if !metadata.is_file() {
        return Err(FileError::NotRotatable {
            path: path.to_owned(),
        });
    }
    let folder = directory_of(path);
    can_write(folder).map_err(|source| FileError::FolderNotWritable {
        path: path.to_owned(),
        folder: folder.to_owned(),
        source,
    })
}

/// Checks that files can be created and found in a folder.
fn can_write(folder: &Path) -> io::Result<()> {
    let needed = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    Ok(access(folder, needed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4, J9: a file that the start would create, or that must be rotated, needs a folder that can
    /// be written. Other files do not.
    #[test]
    fn the_folder_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let existing = folder.path().join("audit.jsonl");
        let missing = folder.path().join("missing.jsonl");
        fs::write(&existing, "").unwrap();
        for must_rotate in [false, true] {
            assert!(check_file(&existing, must_rotate).is_ok());
            assert!(check_file(&missing, must_rotate).is_ok());
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
        // For root, every folder can be written.
        let is_writable = fs::write(folder.path().join("probe"), "").is_ok();
        assert_eq!(check_file(&missing, false).is_ok(), is_writable);
        assert_eq!(check_file(&existing, true).is_ok(), is_writable);
        assert!(check_file(&existing, false).is_ok());
        assert!(!missing.exists());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(check_file(&existing.join("below"), false).is_err());
        assert!(check_file(Path::new("/nowhere/audit.jsonl"), false).is_err());
    }
}
