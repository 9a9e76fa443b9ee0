//! [`ConfigFileError`].

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::ReplaceError;

/// Why a configuration file cannot be read or replaced. The text does not name the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigFileError {
    /// The system does not let it be read.
    #[error("it cannot be read")]
    NotRead(#[source] io::Error),
    /// A link, and the file that it points to.
    #[error("it is a symbolic link; name the file that it points to{}", which(.0.as_deref()))]
    SymbolicLink(Option<PathBuf>),
    /// A folder, a pipe or a device.
    #[error("it is not a file")]
    NotAFile,
    /// Its owner is another user.
    #[error("it belongs to another user")]
    OtherUser,
    /// It has more than 4 MiB.
    #[error("it is larger than 4 MiB")]
    TooLarge,
    /// Its content is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It was removed after it had been read.
    #[error("it was removed meanwhile")]
    Removed,
    /// Its content changed after it had been read.
    #[error("it has changed meanwhile; run the command again")]
    Changed,
    /// The copy of the original cannot be written.
    #[error("its backup cannot be written")]
    NoBackup(#[source] io::Error),
    /// Every name of a backup is taken.
    #[error("there are {maximum} backups of it; remove some")]
    TooManyBackups {
        /// The number of names.
        maximum: usize,
    },
    /// The file is unchanged.
    #[error("it cannot be written")]
    NotWritten(#[source] io::Error),
    /// The file may have the new text, but the change is not durable.
    #[error("a power failure can undo the change; the original is in {}", .backup.display())]
    NotDurable {
        /// The copy of the original.
        backup: PathBuf,
        /// The failure.
        source: ReplaceError,
    },
}

fn which(target: Option<&Path>) -> String {
    target
        .map(|target| format!(", which is {}", target.display()))
        .unwrap_or_default()
}
