#![doc = include_str!("../README.md")]

#[cfg(unix)]
mod config_file;
#[cfg(unix)]
mod config_file_error;
mod locked_file;
mod replace_error;
mod user_directory;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

#[cfg(unix)]
pub use config_file::{ConfigFile, create_private, create_public};
#[cfg(unix)]
pub use config_file_error::ConfigFileError;
pub use locked_file::LockedFile;
pub use replace_error::ReplaceError;
pub use user_directory::user_state_directory;

/// The mode of a file that only its owner can read and write.
pub const PRIVATE: u32 = 0o600;

/// Replaces a file, or creates it. It gets exactly this mode.
///
/// The content is written to a temporary file, which then takes the place of the old one.
/// `temporary` must be in the same directory as `path`. A file or link at `temporary` is removed
/// first: it is what a killed process left.
///
/// # Errors
/// [`ReplaceError::NotReplaced`] if the file cannot be written or renamed: the old content stays,
/// and the temporary file is removed. [`ReplaceError::NotDurable`] if only the directory cannot be
/// synchronized: the file has the new content.
pub fn replace(
    path: &Path,
    temporary: &Path,
    content: &[u8],
    mode: u32,
) -> Result<(), ReplaceError> {
    replace_and(sync_parent, path, temporary, content, mode)
}

/// As [`replace`]; `synchronize` makes the renaming durable.
fn replace_and(
    synchronize: impl FnOnce(&Path) -> io::Result<()>,
    path: &Path,
    temporary: &Path,
    content: &[u8],
    mode: u32,
) -> Result<(), ReplaceError> {
    // If it cannot be removed, the next line fails.
    let _ = fs::remove_file(temporary);
    create_new(temporary, content, mode).map_err(ReplaceError::NotReplaced)?;
    fs::rename(temporary, path).map_err(|error| {
        let _ = fs::remove_file(temporary);
        ReplaceError::NotReplaced(error)
    })?;
    synchronize(path).map_err(ReplaceError::NotDurable)
}

/// Creates a file and waits until its content is on disk. It gets exactly this mode. To make its
/// name durable, too, call [`sync_parent`].
///
/// # Errors
/// Fails if there is a file or link at the path, or the file cannot be written. An incomplete file
/// is removed, which frees its space.
pub fn create_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = private_options().write(true).create_new(true).open(path)?;
    let written = file
        .write_all(content)
        .and_then(|()| set_mode(&file, mode))
        .and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

/// Makes the creation, renaming or removal of a file durable. Returns without an error if the file
/// system cannot synchronize a directory, or this process has no permission to read it.
///
/// # Errors
/// Fails if the directory of the file cannot be opened or synchronized for another reason.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))
        .and_then(|directory| directory.sync_all())
        .or_else(ignore_unsupported)
}

/// Returns the directory of a file: `.` for a name without one.
pub fn directory_of(file: &Path) -> &Path {
    file.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Returns options that create files which only their owner can read and write. They open nothing
/// by themselves: call `write` or `append`, and `create`.
#[must_use]
pub fn private_options() -> OpenOptions {
    #[cfg_attr(not(unix), allow(unused_mut))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    options
}

/// Sets the mode after the creation, when the umask does not apply.
#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Some file systems cannot synchronize a directory, and Windows cannot open one.
fn ignore_unsupported(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Unsupported
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt as _, symlink},
        path::PathBuf,
    };

    use super::*;

    struct Scratch {
        directory: tempfile::TempDir,
        path: PathBuf,
        temporary: PathBuf,
    }

    fn scratch() -> Scratch {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let temporary = directory.path().join("file.tmp");
        Scratch {
            directory,
            path,
            temporary,
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_replaced_file_has_the_new_content_and_mode() {
        let Scratch {
            path, temporary, ..
        } = &scratch();
        replace(path, temporary, b"old", 0o666).unwrap();
        assert_eq!(mode(path), 0o666, "the umask does not apply");
        replace(path, temporary, b"new", PRIVATE).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"new".to_vec());
        assert_eq!(mode(path), PRIVATE);
        assert!(!temporary.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let Scratch {
            directory,
            path,
            temporary,
        } = &scratch();
        let other = directory.path().join("other");
        fs::write(&other, "other").unwrap();
        symlink(&other, temporary).unwrap();
        replace(path, temporary, b"new", PRIVATE).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"new".to_vec());
        assert_eq!(fs::read(&other).unwrap(), b"other".to_vec());
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_alone() {
        let Scratch {
            path, temporary, ..
        } = &scratch();
        fs::create_dir_all(path.join("not empty")).unwrap();
        let failed = replace(path, temporary, b"new", PRIVATE);
        assert!(
            matches!(failed, Err(ReplaceError::NotReplaced(_))),
            "{failed:?}"
        );
        assert!(path.join("not empty").exists());
        assert!(!temporary.exists());
    }

    #[test]
    fn a_file_in_an_unsynchronized_directory_has_the_new_content() {
        let Scratch {
            path, temporary, ..
        } = &scratch();
        replace(path, temporary, b"old", PRIVATE).unwrap();
        let full = |_: &Path| Err(io::ErrorKind::StorageFull.into());
        let failed = replace_and(full, path, temporary, b"new", PRIVATE);
        let Err(ReplaceError::NotDurable(error)) = failed else {
            panic!("{failed:?}")
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(path).unwrap(), b"new".to_vec());
        assert!(!temporary.exists());
    }

    #[test]
    fn a_new_file_replaces_nothing() {
        let Scratch {
            directory, path, ..
        } = &scratch();
        create_new(path, b"first", 0o640).unwrap();
        assert_eq!(mode(path), 0o640);
        assert_eq!(
            create_new(path, b"second", PRIVATE).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        let link = directory.path().join("link");
        symlink(directory.path().join("missing"), &link).unwrap();
        assert_eq!(
            create_new(&link, b"second", PRIVATE).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read(path).unwrap(), b"first");
    }

    #[test]
    fn every_file_has_a_directory() {
        for (file, directory) in [
            ("a", "."),
            ("./a", "."),
            ("a/b", "a"),
            ("/a", "/"),
            ("../a", ".."),
        ] {
            assert_eq!(
                directory_of(Path::new(file)),
                Path::new(directory),
                "{file}"
            );
        }
    }

    #[test]
    fn an_unsupported_synchronization_is_no_error() {
        for kind in [
            io::ErrorKind::Unsupported,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::InvalidInput,
        ] {
            assert!(ignore_unsupported(kind.into()).is_ok(), "{kind}");
        }
        for kind in [
            io::ErrorKind::StorageFull,
            io::ErrorKind::NotFound,
            io::ErrorKind::Other,
        ] {
            assert_eq!(ignore_unsupported(kind.into()).unwrap_err().kind(), kind);
        }
    }
}
