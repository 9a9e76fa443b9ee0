//! [`StoreError`].

use std::{io, path::PathBuf};

/// Why the credential store cannot be used. No variant holds anything of an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory cannot be read or written.
    #[error("cannot use the credential file {path}: {kind}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        kind: io::ErrorKind,
    },
    /// A file cannot be written, for want of space or permission for instance.
    #[error(
        "cannot write the credential file {path}: {kind}; free space or correct the permissions, or name another \
         directory with --store"
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        kind: io::ErrorKind,
    },
    /// A file is no entry, and was renamed. The next look finds no entry in its place.
    #[error("the credential file {path} cannot be understood; it is kept as {kept}, and you have to sign in again")]
    Corrupted {
        /// Where the file was.
        path: PathBuf,
        /// What it is called now.
        kept: PathBuf,
    },
    /// Others than the owner can read or write a file. It was left alone.
    #[error("others on this machine can reach the credential file {path}; set its mode to 0600 if you trust it")]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// Another process holds the entry and does not let go.
    #[error("another process holds the credential file {path}")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// An entry is larger than 256 KiB, and was not written.
    #[error("the credentials are too large to keep")]
    TooLarge,
}

impl StoreError {
    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "store.io",
            Self::NotWritable { .. } => "store.not_writable",
            Self::Corrupted { .. } => "store.corrupted",
            Self::Exposed { .. } => "store.exposed",
            Self::Busy { .. } => "store.busy",
            Self::TooLarge => "store.too_large",
        }
    }
}
