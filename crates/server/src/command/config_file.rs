//! Reads a configuration file safely and replaces it atomically.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use portcullis_files::{PRIVATE, create_new, sync_parent};
use zeroize::Zeroizing;

/// A configuration as it was read.
pub(super) struct ConfigFile {
    path: PathBuf,
    pub(super) text: Zeroizing<String>,
    mode: u32,
}

const MAX_SIZE: u64 = 4 * 1024 * 1024;
const MAX_BACKUPS: usize = 100;
/// The mode of files that everyone can read.
const PUBLIC: u32 = 0o644;

impl ConfigFile {
    /// Reads a regular file of this user. None if there is no file.
    ///
    /// # Errors
    /// Fails for symbolic links, special files, files of other users, files over 4 MiB, and text that is not UTF-8.
    pub(super) fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(None);
            }
            metadata => metadata.context("it cannot be read")?,
        };
        if metadata.is_symlink() {
            let target =
                fs::canonicalize(path).map(|target| format!(", which is {}", target.display())).unwrap_or_default();
            bail!("it is a symbolic link; name the file that it points to{target}");
        }
        // Opening a pipe would wait for its other end.
        ensure!(metadata.is_file(), "it is not a file");
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).context("it cannot be read")?;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).context("it cannot be read")?;
        let metadata = file.metadata().context("it cannot be read")?;
        ensure!(metadata.is_file(), "it is not a file");
        ensure!(metadata.uid() == rustix::process::geteuid().as_raw(), "it belongs to another user");
        ensure!(metadata.len() <= MAX_SIZE, "it is larger than 4 MiB");
        let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1));
        file.take(MAX_SIZE + 1).read_to_end(&mut bytes).context("it cannot be read")?;
        ensure!(bytes.len() as u64 <= MAX_SIZE, "it is larger than 4 MiB");
        let text = std::str::from_utf8(&bytes).ok().context("it is not UTF-8 text")?;
        let text = Zeroizing::new(text.to_owned());
        Ok(Some(Self { path: path.to_owned(), text, mode: metadata.mode() & 0o777 }))
    }

    /// Whether users other than the owner can write the file.
    pub(super) fn is_writable_by_others(&self) -> bool {
        self.mode & 0o022 != 0
    }

    /// Replaces the file atomically, and returns the path of a backup of the original.
    ///
    /// # Errors
    /// Fails when the file has changed since it was read, or cannot be written. It is then unchanged.
    pub(super) fn replace(&self, text: &str) -> anyhow::Result<PathBuf> {
        let now = Self::read(&self.path)?.context("it was removed meanwhile")?;
        ensure!(*now.text == *self.text, "it has changed meanwhile; run the command again");
        let backup = self.backup()?;
        let replaced = portcullis_files::replace(&self.path, &temporary(&self.path), text.as_bytes(), self.mode);
        if let Err(error) = replaced {
            // Without a change, no backup is needed.
            let _ = fs::remove_file(&backup);
            return Err(error).context("it cannot be written");
        }
        Ok(backup)
    }

    fn backup(&self) -> anyhow::Result<PathBuf> {
        for number in 1..=MAX_BACKUPS {
            let path = sibling(&self.path, &format!(".backup-{number}"));
            match create_new(&path, self.text.as_bytes(), PRIVATE) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                written => return written.map(|()| path).context("its backup cannot be written"),
            }
        }
        bail!("there are {MAX_BACKUPS} backups of it; remove some")
    }
}

/// Creates a file that everyone can read. It appears with its whole content.
///
/// # Errors
/// Fails if there is a file or link at the path, or the file cannot be written.
pub(super) fn create(path: &Path, text: &str) -> io::Result<()> {
    let temporary = temporary(path);
    create_new(&temporary, text.as_bytes(), PUBLIC)?;
    // A link does not replace another file, as a rename does. Not every file system has links.
    let created = match fs::hard_link(&temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => create_new(path, text.as_bytes(), PUBLIC),
        linked => linked,
    };
    // The file is complete without it.
    let _ = fs::remove_file(&temporary);
    created.and_then(|()| sync_parent(path))
}

/// Creates a file that only its owner can read. A link or file at the path is an error.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_new(path, bytes, PRIVATE)?;
    sync_parent(path)
}

/// The temporary file for a replacement. No lock excludes other processes, so its name contains the process identifier.
fn temporary(path: &Path) -> PathBuf {
    sibling(path, &format!(".portcullis-{}.tmp", std::process::id()))
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}
