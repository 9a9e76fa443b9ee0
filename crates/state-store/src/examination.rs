//! What would prevent the use of a [`StateDirectory`] and its files, without using it.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use portcullis_files::private_options;
use portcullis_session::{LastUse, SessionEnd};
use rustix::{
    fs::{Access, access},
    process::geteuid,
};
use zeroize::Zeroizing;

use crate::{
    directory::{StateDirectory, parse_keys, read_secret},
    error::StateError,
    file_names::{ENDS, KEYS, LOCK, USES},
    log_file::format::read,
};

/// Each function checks whether another one would succeed, as far as that can be seen without
/// changing anything, and fails with the error that it would return. Another process may use the
/// directory.
impl StateDirectory {
    /// Checks whether [`open`](Self::open) would succeed. For root, the directory may belong to
    /// another user, who will use it.
    ///
    /// # Errors
    /// Fails with the error of `open`.
    pub fn examine(path: &Path) -> Result<(), StateError> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return can_create(path),
            Err(error) => return Err(StateError::io(path)(error)),
        };
        if !metadata.is_dir() {
            return Err(StateError::io(path)(io::ErrorKind::NotADirectory.into()));
        }
        let user = geteuid();
        if metadata.uid() != user.as_raw() && !user.is_root() {
            return Err(StateError::Owner {
                path: path.to_owned(),
            });
        }
        can_write(path)?;
        let lock = path.join(LOCK);
        match private_options().write(true).open(&lock) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StateError::io(&lock)(error))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether [`session_keys`](Self::session_keys) would succeed.
    ///
    /// # Errors
    /// Fails with the error of `session_keys`.
    pub fn examine_session_keys(path: &Path) -> Result<(), StateError> {
        match Self::examine_secret(path, KEYS)? {
            Some(text) => parse_keys(path.join(KEYS), &text).map(drop),
            None => Ok(()),
        }
    }

    /// Checks whether [`FileJournal::open`](crate::FileJournal::open) would succeed.
    ///
    /// # Errors
    /// Fails with the error of `FileJournal::open`.
    pub fn examine_journal(path: &Path) -> Result<(), StateError> {
        read::<SessionEnd>(&path.join(ENDS))?;
        read::<LastUse>(&path.join(USES))?;
        Ok(())
    }

    /// Returns what [`secret_file`](Self::secret_file) would.
    ///
    /// # Errors
    /// Fails with the error of `secret_file`.
    pub fn examine_secret(
        path: &Path,
        name: &str,
    ) -> Result<Option<Zeroizing<String>>, StateError> {
        read_secret(&path.join(name))
    }
}

/// Checks that a missing directory can be created in the nearest existing one.
fn can_create(path: &Path) -> Result<(), StateError> {
    let absolute = std::path::absolute(path).map_err(StateError::io(path))?;
    match absolute.ancestors().skip(1).find(|parent| parent.exists()) {
        Some(parent) if !parent.is_dir() => {
            Err(StateError::io(path)(io::ErrorKind::NotADirectory.into()))
        }
        Some(parent) => can_write(parent),
        None => Ok(()),
    }
}

fn can_write(directory: &Path) -> Result<(), StateError> {
    let needed = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    access(directory, needed)
        .map_err(io::Error::from)
        .map_err(StateError::io(directory))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn examine(path: &Path) -> Option<&'static str> {
        StateDirectory::examine(path)
            .and_then(|()| StateDirectory::examine_session_keys(path))
            .and_then(|()| StateDirectory::examine_journal(path))
            .err()
            .map(|error| error.code())
    }

    /// N4: a directory that can be used, or created, has no error, also while it is in use. Others
    /// have that of the start.
    #[test]
    fn unusable_directories_are_found() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        assert_eq!(examine(&path), None);
        assert!(!path.exists(), "nothing is created");
        let directory = StateDirectory::open(&path).unwrap();
        directory.session_keys().unwrap();
        assert_eq!(examine(&path), None, "another process uses it");
        assert_eq!(examine(&path.join(KEYS)), Some("state.io"));
        assert_eq!(examine(&path.join(KEYS).join("below")), Some("state.io"));

        for (file, text, code) in [
            (ENDS, "another format", "state.format"),
            (ENDS, "portcullis session ends, form 1\nno record\n", ""),
            (USES, "another format", "state.format"),
            (KEYS, "short", "state.keys"),
        ] {
            let before = fs::read(path.join(file)).ok();
            fs::write(path.join(file), text).unwrap();
            assert_eq!(examine(&path).unwrap_or_default(), code, "{file}: {text}");
            match before {
                Some(before) => fs::write(path.join(file), before).unwrap(),
                None => fs::remove_file(path.join(file)).unwrap(),
            }
        }
    }
    /// N4: secrets are read as the start reads them: none that other users can access.
    #[test]
    fn exposed_secrets_are_found() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path();
        let secret = |name| {
            StateDirectory::examine_secret(path, name)
                .map(|text| text.is_some())
                .map_err(|error| error.code())
        };
        assert_eq!(secret("secret"), Ok(false));
        fs::write(path.join("secret"), "hush").unwrap();
        for (mode, found) in [(0o644, Err("state.exposed")), (0o600, Ok(true))] {
            fs::set_permissions(path.join("secret"), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(secret("secret"), found, "{mode:o}");
        }
        fs::create_dir(path.join(LOCK)).unwrap();
        assert_eq!(examine(path), Some("state.io"));
    }
}
