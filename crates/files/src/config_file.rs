//! [`ConfigFile`]: a user's file, read safely and replaced atomically.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, process::geteuid};
use zeroize::Zeroizing;

use crate::{ConfigFileError, PRIVATE, ReplaceError, create_new, sync_parent};

/// A configuration file as it was read. Another program can change it meanwhile;
/// [`replace`](Self::replace) detects that.
pub struct ConfigFile {
    path: PathBuf,
    /// The content, which can contain secrets.
    pub text: Zeroizing<String>,
    /// The permission bits, which a replacement keeps.
    mode: u32,
}

/// The maximum size of a file that is read, in bytes.
const MAX_SIZE: u64 = 4 * 1024 * 1024;
/// The maximum number of backups beside a file.
const MAX_BACKUPS: usize = 100;
/// The mode of files that everyone can read.
const PUBLIC: u32 = 0o644;

impl ConfigFile {
    /// Reads a regular file of this user. None if there is no file.
    ///
    /// # Errors
    /// Fails for symbolic links, special files, files of other users, files over 4 MiB, and text
    /// that is not UTF-8.
    pub fn read(path: &Path) -> Result<Option<Self>, ConfigFileError> {
        let metadata = match fs::symlink_metadata(path) {
            Err(error)
                if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory]
                    .contains(&error.kind()) =>
            {
                return Ok(None);
            }
            metadata => metadata.map_err(ConfigFileError::NotRead)?,
        };
        if metadata.is_symlink() {
            return Err(ConfigFileError::SymbolicLink(fs::canonicalize(path).ok()));
        }
        // Opening a pipe would wait for its other end.
        if !metadata.is_file() {
            return Err(ConfigFileError::NotAFile);
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)
            .map_err(ConfigFileError::NotRead)?;
        let metadata = file.metadata().map_err(ConfigFileError::NotRead)?;
        if !metadata.is_file() {
            return Err(ConfigFileError::NotAFile);
        }
        if metadata.uid() != geteuid().as_raw() {
            return Err(ConfigFileError::OtherUser);
        }
        if metadata.len() > MAX_SIZE {
            return Err(ConfigFileError::TooLarge);
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(
            usize::try_from(metadata.len()).unwrap_or(0) + 1,
        ));
        file.take(MAX_SIZE + 1)
            .read_to_end(&mut bytes)
            .map_err(ConfigFileError::NotRead)?;
        if bytes.len() as u64 > MAX_SIZE {
            return Err(ConfigFileError::TooLarge);
        }
        let text = str::from_utf8(&bytes).map_err(|_| ConfigFileError::NotText)?;
        let text = Zeroizing::new(text.to_owned());
        Ok(Some(Self {
            path: path.to_owned(),
            text,
            mode: metadata.mode() & 0o777,
        }))
    }

    /// Whether users other than the owner can write the file.
    pub fn is_writable_by_others(&self) -> bool {
        self.mode & 0o022 != 0
    }

    /// Replaces the file atomically, and returns the path of a backup of the original.
    ///
    /// # Errors
    /// Fails when the file has changed since it was read, or cannot be written: it is then
    /// unchanged, and there is no backup. Also fails when the directory cannot be synchronized: the
    /// file then has the new text, and the error names the backup.
    pub fn replace(&self, text: &str) -> Result<PathBuf, ConfigFileError> {
        let now = Self::read(&self.path)?.ok_or(ConfigFileError::Removed)?;
        if *now.text != *self.text {
            return Err(ConfigFileError::Changed);
        }
        let backup = self.backup()?;
        let replaced = crate::replace(
            &self.path,
            &temporary(&self.path),
            text.as_bytes(),
            self.mode,
        );
        finish_replacement(replaced, backup)
    }

    /// Writes the original to the first free name `<file>.backup-<number>`, readable only by the
    /// owner.
    fn backup(&self) -> Result<PathBuf, ConfigFileError> {
        for number in 1..=MAX_BACKUPS {
            let path = sibling(&self.path, &format!(".backup-{number}"));
            match create_new(&path, self.text.as_bytes(), PRIVATE) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                written => return written.map(|()| path).map_err(ConfigFileError::NoBackup),
            }
        }
        Err(ConfigFileError::TooManyBackups {
            maximum: MAX_BACKUPS,
        })
    }
}

/// Returns the path of the backup of a replaced file. Removes the backup if the file is unchanged.
fn finish_replacement(
    replaced: Result<(), ReplaceError>,
    backup: PathBuf,
) -> Result<PathBuf, ConfigFileError> {
    match replaced {
        Ok(()) => Ok(backup),
        Err(ReplaceError::NotReplaced(error)) => {
            // The file itself is the original.
            let _ = fs::remove_file(&backup);
            Err(ConfigFileError::NotWritten(error))
        }
        // The file may have the new text, so the backup is the only copy of the original.
        Err(source) => Err(ConfigFileError::NotDurable { backup, source }),
    }
}

/// Creates a file that everyone can read. It appears with its whole content.
///
/// # Errors
/// Fails if there is a file or link at the path, or the file cannot be written. Also fails if the
/// directory cannot be synchronized; the file then exists.
pub fn create_public(path: &Path, text: &str) -> io::Result<()> {
    let temporary = temporary(path);
    create_new(&temporary, text.as_bytes(), PUBLIC)?;
    // A link does not replace another file, as a rename does. Not every file system has links.
    let created = match fs::hard_link(&temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            create_new(path, text.as_bytes(), PUBLIC)
        }
        linked => linked,
    };
    // The file is complete without it.
    let _ = fs::remove_file(&temporary);
    created.and_then(|()| sync_parent(path))
}

/// Creates a file that only its owner can read.
///
/// # Errors
/// As [`create_public`].
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_new(path, bytes, PRIVATE)?;
    sync_parent(path)
}

/// The temporary file for a replacement. No lock excludes other processes, so its name contains the
/// process identifier.
fn temporary(path: &Path) -> PathBuf {
    sibling(path, &format!(".portcullis-{}.tmp", std::process::id()))
}

/// The path in the same directory whose file name ends with `suffix`.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in a scratch directory, and the names of all files there.
    fn scratch(
        text: &str,
    ) -> (
        tempfile::TempDir,
        ConfigFile,
        impl Fn() -> Vec<String> + use<>,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mcp.json");
        fs::write(&path, text).unwrap();
        let listed = directory.path().to_owned();
        let names = move || {
            let entries = fs::read_dir(&listed)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = entries.collect();
            names.sort();
            names
        };
        (directory, ConfigFile::read(&path).unwrap().unwrap(), names)
    }

    #[test]
    fn a_replaced_file_has_a_backup() {
        let (_directory, file, names) = scratch("old");
        let backup = file.replace("new").unwrap();
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "new");
        assert_eq!(names().len(), 2);
        assert_eq!(fs::read_to_string(backup).unwrap(), "old");
    }

    #[test]
    fn a_file_that_has_changed_is_not_replaced() {
        let (_directory, file, names) = scratch("old");
        fs::write(&file.path, "changed").unwrap();
        assert!(file.replace("new").is_err());
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "changed");
        assert_eq!(names(), ["mcp.json"]);
    }

    #[test]
    fn an_unchanged_file_keeps_no_backup() {
        let (_directory, file, names) = scratch("old");
        let full = ReplaceError::NotReplaced(io::ErrorKind::StorageFull.into());
        assert!(finish_replacement(Err(full), file.backup().unwrap()).is_err());
        assert_eq!(names(), ["mcp.json"]);
    }

    #[test]
    fn a_replaced_file_that_is_not_durable_keeps_its_backup() {
        let (_directory, file, _) = scratch("old");
        let backup = file.backup().unwrap();
        let full = ReplaceError::NotDurable(io::ErrorKind::StorageFull.into());
        let error = finish_replacement(Err(full), backup.clone()).unwrap_err();
        assert_eq!(fs::read_to_string(&backup).unwrap(), "old");
        assert!(
            error.to_string().contains(backup.to_str().unwrap()),
            "{error}"
        );
    }
}
