//! Checks that no other user of this machine can access the store.

use std::{fs::File, path::Path};

use super::StoreError;

/// Checks a directory, which need not exist. Fails with [`StoreError::OtherOwner`] when it belongs
/// to another user, who can replace its files; [`StoreError::ExposedDirectory`] when others can
/// list or replace its files; [`StoreError::Io`] when that is unknown.
#[cfg(unix)]
pub(super) fn check_directory(path: &Path) -> Result<(), StoreError> {
    use std::{fs, io, os::unix::fs::MetadataExt as _};

    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(path, &error)),
    };
    check_owner(path, &metadata)?;
    // Without the right to read or write the directory, the right to search it leaves the mode of
    // each file to decide.
    if metadata.is_dir() && metadata.mode() & 0o066 != 0 {
        return Err(StoreError::ExposedDirectory {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
        });
    }
    Ok(())
}

/// Checks an open file. Fails with [`StoreError::OtherOwner`] when it belongs to another user;
/// [`StoreError::Exposed`] when others can access it; [`StoreError::Io`] when that is unknown.
#[cfg(unix)]
pub(super) fn check_file(path: &Path, file: &File) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = file
        .metadata()
        .map_err(|error| StoreError::io(path, &error))?;
    check_owner(path, &metadata)?;
    match metadata.mode() & 0o7777 {
        mode if mode & 0o077 != 0 => Err(StoreError::Exposed {
            path: path.to_owned(),
            mode,
        }),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn check_owner(path: &Path, metadata: &std::fs::Metadata) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;

    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner == user {
        Ok(())
    } else {
        Err(StoreError::OtherOwner {
            path: path.to_owned(),
            owner,
            user,
        })
    }
}

/// On other systems, the access rights of the user's profile decide.
#[cfg(not(unix))]
pub(super) fn check_directory(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// As [`check_directory`].
#[cfg(not(unix))]
pub(super) fn check_file(_: &Path, _: &File) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// I7: a file or directory of another user is rejected. Every user can read the root directory.
    #[test]
    fn the_owner_is_checked() {
        let root = Path::new("/");
        let metadata = std::fs::metadata(root).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let checked = check_owner(root, &metadata);
        let other = StoreError::OtherOwner {
            path: root.to_owned(),
            owner: 0,
            user,
        };
        assert_eq!(checked, if user == 0 { Ok(()) } else { Err(other) });
    }
}
