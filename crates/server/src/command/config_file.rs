//! Reads a configuration file safely and replaces it atomically.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use zeroize::Zeroizing;

use crate::folder::folder_of;

/// A configuration as it was read.
pub(super) struct ConfigFile {
    path: PathBuf,
    pub(super) text: Zeroizing<String>,
    mode: u32,
}

const MAX_SIZE: u64 = 4 * 1024 * 1024;
const MAX_BACKUPS: usize = 100;
/// The mode of files that only the owner can read and write.
const PRIVATE: u32 = 0o600;
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
        let beside = sibling(&self.path, &format!(".portcullis-{}.tmp", std::process::id()));
        let replace = || {
            write_new(&beside, text.as_bytes(), self.mode)?;
            fs::rename(&beside, &self.path)?;
            sync_directory(&self.path)
        };
        if let Err(error) = replace() {
            // The files may not exist.
            let _ = fs::remove_file(&beside);
            let _ = fs::remove_file(&backup);
            return Err(error).context("it cannot be written");
        }
        Ok(backup)
    }

    fn backup(&self) -> anyhow::Result<PathBuf> {
        for number in 1..=MAX_BACKUPS {
            let path = sibling(&self.path, &format!(".backup-{number}"));
            match write_new(&path, self.text.as_bytes(), PRIVATE) {
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
    let beside = sibling(path, &format!(".portcullis-{}.tmp", std::process::id()));
    write_new(&beside, text.as_bytes(), PUBLIC)?;
    // A link does not replace another file, as a rename does. Not every file system has links.
    let created = match fs::hard_link(&beside, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => write_new(path, text.as_bytes(), PUBLIC),
        linked => linked,
    };
    // The file is complete without it.
    let _ = fs::remove_file(&beside);
    created.and_then(|()| sync_directory(path))
}

/// Creates a file that only its owner can read. A link or file at the path is an error.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_new(path, bytes, PRIVATE)?;
    sync_directory(path)
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
    let written = file.write_all(bytes).and_then(|()| {
        // The mode of a new file is subject to the umask.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    });
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Makes a rename or a new file durable, if the file system supports that.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path)).and_then(|directory| directory.sync_all()) {
        Err(error) if [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported].contains(&error.kind()) => Ok(()),
        result => result,
    }
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}
