//! The errors of the trail: of its keys, its chain, its file and its start.

use std::{io, path::PathBuf};

use thiserror::Error;

/// The minimum length of a secret in bytes.
pub(crate) const MIN_SECRET: usize = 32;
/// The maximum number of keys.
pub(crate) const MAX_KEYS: usize = 16;

/// Why a text has no [`ChainKeys`](crate::ChainKeys). The message contains no part of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The text has no secret.
    #[error("there is no key; generate one with `openssl rand -base64 32`")]
    Empty,
    /// The secret in this line, from 1, is too short.
    #[error(
        "line {0} has fewer than {MIN_SECRET} characters; generate a key with `openssl rand -base64 32`"
    )]
    TooShort(usize),
    /// The text has too many secrets.
    #[error("there are more than {MAX_KEYS} keys")]
    TooMany,
    /// The derivation of a key failed.
    #[error("the key cannot be derived from its secret")]
    Underivable,
}

/// A text is not a [`Head`](crate::Head).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected SEQ:MAC, the value of `audit.head` in the log")]
#[non_exhaustive]
pub struct HeadError;

/// Why the chain of a file cannot be continued. The messages contain their causes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The file exists, and its end cannot be read.
    #[error("{} cannot be read: {error}; let this process read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The last lines of the file are not records of a chain.
    #[error(
        "the chain of records cannot continue in {}, whose last lines are not records of a chain; move the file away",
        path.display()
    )]
    NotChained {
        /// The file.
        path: PathBuf,
    },
    /// The file has no records, and the rotated file before it cannot be read.
    #[error("the newest rotated file of {} cannot be read: {error}; let this process read it", path.display())]
    RotatedUnreadable {
        /// The file that was rotated.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

/// Why a file cannot be used for a trail.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be opened, or there is none and its folder does not permit to create it.
    #[error("{} cannot be opened; name a file that this user can read and write, in a folder that exists and that it can write", path.display())]
    Unopenable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file can be written, and its folder does not permit to rename it.
    #[error("{} cannot be rotated, because its folder {} cannot be written", path.display(), folder.display())]
    FolderNotWritable {
        /// The file.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A pipe or a device cannot be rotated.
    #[error("{} is not a regular file, so it cannot be rotated", path.display())]
    NotRotatable {
        /// The file.
        path: PathBuf,
    },
}

/// Why a trail cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The chain cannot be continued, and [`WithoutChain::Refuse`](crate::WithoutChain::Refuse)
    /// applies.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// Standard output is closed.
    #[error("standard output cannot be used")]
    Stdout(#[source] io::Error),
    /// The file cannot be opened.
    #[error(
        "{} cannot be opened; let this process read and write it and its folder, or name another file",
        path.display()
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The thread that writes the records cannot be created.
    #[error("the thread of the audit trail cannot be created")]
    Thread(#[source] io::Error),
}
