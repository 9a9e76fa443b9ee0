//! [`Question`], and why its answer is not taken.

use anyhow::anyhow;

/// A question, and the option with its answer.
pub(super) struct Question<'a> {
    pub(super) text: &'static str,
    pub(super) option: &'static str,
    pub(super) given: Option<&'a str>,
    pub(super) default: Option<String>,
    /// Whether the default is the answer if there is neither the option nor a terminal.
    pub(super) is_optional: bool,
}

/// Why an answer is not taken.
pub(super) enum Rejection {
    Invalid {
        reason: String,
        /// The answer to propose instead.
        proposal: Option<String>,
    },
    /// Nothing more can be asked.
    Failed(anyhow::Error),
}

impl Rejection {
    /// The error of an invalid option.
    pub(super) fn into_error(self, option: &str) -> anyhow::Error {
        match self {
            Self::Invalid { reason, .. } => anyhow!("{option}: {reason}"),
            Self::Failed(error) => error,
        }
    }
}

impl From<String> for Rejection {
    fn from(reason: String) -> Self {
        Self::Invalid {
            reason,
            proposal: None,
        }
    }
}

impl From<anyhow::Error> for Rejection {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
