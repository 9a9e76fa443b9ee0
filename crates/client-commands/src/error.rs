//! From the errors within commands to those of this crate.

use portcullis_terminal::CommandError;

pub(crate) fn command_error(error: anyhow::Error) -> CommandError {
    CommandError::new(error.reallocate_into_boxed_dyn_error_without_backtrace())
}
