//! [`StateDirectory::examine`]: what would prevent the use of a directory, without using it.

use std::{fs, fs::File, io, os::unix::fs::MetadataExt as _, path::Path};

use portcullis_session::{LastUse, SessionEnd};
use rustix::{
    fs::{Access, access},
    process::geteuid,
};

use crate::{
    directory::{StateDirectory, parse_keys, read_keys},
    error::StateError,
    file_names::{ENDS, KEYS, USES},
    log_file::format::read,
};

impl StateDirectory {
    /// Checks whether [`open`](Self::open), [`session_keys`](Self::session_keys) and
    /// [`FileJournal::open`](crate::FileJournal::open) would succeed, as far as that can be seen
    /// without changing anything. Another process may use the directory. For root, it may belong to
    /// another user, who will use it.
    ///
    /// # Errors
    /// Fails with the error that one of them would return.
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
        let keys = path.join(KEYS);
        match File::open(&keys) {
            Ok(file) => drop(read_keys(&keys, &file).and_then(|text| parse_keys(keys, &text))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StateError::io(&keys)(error)),
        }
        read::<SessionEnd>(&path.join(ENDS))?;
        read::<LastUse>(&path.join(USES))?;
        Ok(())
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
    use super::*;

    /// N4: a directory that can be used, or created, has no error, also while it is in use. Others
    /// have that of the start.
    #[test]
    fn unusable_directories_are_found() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let examine = |path: &Path| {
            StateDirectory::examine(path)
                .err()
                .map(|error| error.code())
        };
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
}
