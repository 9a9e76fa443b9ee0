//! [`StateError`]: why a state directory cannot be used.

use std::{
    io,
    path::{Path, PathBuf},
};

use portcullis_session::KeyError;

/// Why a state directory cannot be used. The message names the path and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A file or the directory cannot be read or written, or the thread that writes them cannot be
    /// created.
    #[error("{} cannot be used: {error}; name a directory in which this user can read and write files", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The directory belongs to another user.
    #[error("{} belongs to another user; name a directory that belongs to the user of this process", path.display())]
    Owner {
        /// The path.
        path: PathBuf,
    },
    /// Another process uses the directory.
    #[error("{} is in use by another process, such as a server that still runs; stop that one, or give each process a directory of its own", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Other users can access the file with the keys.
    #[error("other users can access {}; run `chmod 600` on it, or delete it to get new keys", path.display())]
    Exposed {
        /// The path.
        path: PathBuf,
    },
    /// The file has another format.
    #[error("{} was written by another version or is damaged; use the version that wrote it, or move it away, which ends all sessions that were opened before", path.display())]
    Format {
        /// The path.
        path: PathBuf,
    },
    /// The file is larger than any that this version writes.
    #[error("{} is too large; move it away, which ends all sessions that were opened before", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
    },
    /// The file lacks records that were in it.
    #[error(
        "{} is damaged: a line before its end cannot be read; restore it from a backup, or move it away, which ends all sessions that \
         were opened before",
        path.display()
    )]
    Damaged {
        /// The path.
        path: PathBuf,
    },
    /// The keys cannot be used.
    #[error("the keys in {} cannot be used: {error}; delete the file to get new keys", path.display())]
    Keys {
        /// The path.
        path: PathBuf,
        /// The cause.
        error: KeyError,
    },
    /// The operating system returns no random bytes.
    #[error("the operating system returns no random bytes")]
    NoRandomness,
}

impl StateError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "state.io",
            Self::Owner { .. } => "state.owner",
            Self::InUse { .. } => "state.in_use",
            Self::Exposed { .. } => "state.exposed",
            Self::Format { .. } => "state.format",
            Self::TooLarge { .. } => "state.too_large",
            Self::Damaged { .. } => "state.damaged",
            Self::Keys { .. } => "state.keys",
            Self::NoRandomness => "state.no_randomness",
        }
    }

    /// Returns a function that adds the path to the cause, for `map_err`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}
