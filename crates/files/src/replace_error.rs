//! [`ReplaceError`]: how far a replacement came before it failed.

use std::{error::Error, fmt, io};

/// Why [`replace`](crate::replace) failed, and which content the file has now.
///
/// It converts to [`io::Error`], for callers to which both failures mean the same.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplaceError {
    /// The file has its old content.
    NotReplaced(io::Error),
    /// The file has the new content, but its directory could not be synchronized: a power failure
    /// can restore the old content.
    NotDurable(io::Error),
}

impl fmt::Display for ReplaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReplaced(_) => "the file was not replaced",
            Self::NotDurable(_) => {
                "the file was replaced, but its directory cannot be synchronized"
            }
        })
    }
}

impl Error for ReplaceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotReplaced(error) | Self::NotDurable(error) => Some(error),
        }
    }
}

impl From<ReplaceError> for io::Error {
    fn from(error: ReplaceError) -> Self {
        match error {
            ReplaceError::NotReplaced(error) | ReplaceError::NotDurable(error) => error,
        }
    }
}
