//! [`CommandError`].

use std::{error::Error, io};

use portcullis_config::ConfigErrors;

use crate::output::OutputClosed;

/// Why a command has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The errors of a configuration.
    #[error(transparent)]
    Config(ConfigErrors),
    /// The reader of standard output has closed it, as `head` does.
    #[error("standard output is closed")]
    OutputClosed,
    /// Another error. Its text and those of its sources contain the fix.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

impl CommandError {
    /// The error of a command. One of a configuration or of a closed standard output can have
    /// others above it.
    pub fn new(error: Box<dyn Error + Send + Sync>) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = Some(&*error);
        while let Some(current) = next {
            if let Some(errors) = current.downcast_ref::<ConfigErrors>() {
                return Self::Config(errors.clone());
            }
            if is_output_closed(current) {
                return Self::OutputClosed;
            }
            next = current.source();
        }
        Self::Other(error)
    }
}

fn is_output_closed(error: &(dyn Error + 'static)) -> bool {
    let cause = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    cause.is_some_and(|cause| cause.is::<OutputClosed>())
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;
    use crate::output::output_error;

    fn command_error(error: anyhow::Error) -> CommandError {
        CommandError::new(error.reallocate_into_boxed_dyn_error_without_backtrace())
    }

    /// J9: a closed connection is not a closed standard output.
    #[test]
    fn a_closed_output_is_recognized() {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        let is_output_closed = |error| matches!(command_error(error), CommandError::OutputClosed);
        assert!(is_output_closed(output_error(closed()).into()));
        assert!(is_output_closed(
            anyhow::Error::from(output_error(closed())).context("standard output")
        ));
        assert!(!is_output_closed(
            Err::<(), _>(closed()).context("the server").unwrap_err()
        ));
        assert!(!is_output_closed(
            output_error(io::ErrorKind::StorageFull.into()).into()
        ));
    }
}
