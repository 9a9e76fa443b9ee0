//! [`StoreError`]: why the credential store cannot be used.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why the credential store cannot be used. No variant contains credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory cannot be read or written.
    #[error("cannot use the credential file {path}: {kind}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        kind: io::ErrorKind,
    },
    /// A file cannot be written, for example because of a full disk or missing permissions.
    #[error(
        "cannot write the credential file {path}: {kind}; free space or correct the permissions, or name another \
         directory"
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        kind: io::ErrorKind,
    },
    /// A file is not a valid entry, and was renamed. The next read finds no entry.
    #[error("the credential file {path} is corrupted; it was renamed to {kept}; sign in again")]
    Corrupted {
        /// Where the file was.
        path: PathBuf,
        /// Its new name.
        kept: PathBuf,
    },
    /// Users other than the owner can read or write a file. The file was not changed.
    #[error(
        "other users of this machine can access the credential file {path} (mode {mode:04o}); run `chmod 600 {path}` if \
         you trust it"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Users other than the owner can list, add or replace the files of the directory. It was not
    /// changed.
    #[error(
        "other users of this machine can access the credential store {path} (mode {mode:04o}); run `chmod 700 {path}` if \
         you trust its files, or name another directory"
    )]
    ExposedDirectory {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file, or the directory, belongs to another user than the one of this process, and was not
    /// used.
    #[error(
        "{path} belongs to user {owner}, and this program runs as user {user}; run `chown {user} {path}` if you trust it, or \
         name another directory"
    )]
    OtherOwner {
        /// The file or directory.
        path: PathBuf,
        /// The numeric identifier of its owner.
        owner: u32,
        /// The numeric identifier of the effective user.
        user: u32,
    },
    /// Another process, or another task of this one, holds the lock of the entry.
    #[error("another process holds the lock of the credential file {path}")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// An entry is larger than 256 KiB, and was not written to the directory.
    #[error("the credentials are too large to store")]
    TooLarge,
}

impl StoreError {
    /// The error of an operation on a file or directory.
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            kind: error.kind(),
        }
    }

    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "store.io",
            Self::NotWritable { .. } => "store.not_writable",
            Self::Corrupted { .. } => "store.corrupted",
            Self::Exposed { .. } | Self::ExposedDirectory { .. } => "store.exposed",
            Self::OtherOwner { .. } => "store.other_owner",
            Self::Busy { .. } => "store.busy",
            Self::TooLarge => "store.too_large",
        }
    }
}

/// Treats a corrupted entry, which is already quarantined, as missing, and logs a warning. Returns
/// all other errors.
pub(crate) fn ignore_corrupted<T>(
    read: Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    match read {
        Err(error @ StoreError::Corrupted { .. }) => {
            tracing::warn!(reason = error.code(), "{error}");
            Ok(None)
        }
        other => other,
    }
}
