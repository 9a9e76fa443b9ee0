//! [`report`]: the errors of commands on standard error.

use std::error::Error;

use owo_colors::{OwoColorize as _, Stream};
use portcullis_config::ConfigErrors;
use portcullis_metadata::EscapedText;

use crate::{CommandError, advice, output::tell};

/// Prints an error on one line, or the errors of a configuration on one line each. Text from other
/// parties is escaped. That standard output is closed, as by `head`, is not printed.
pub fn report(error: &CommandError) {
    let label = "error:".if_supports_color(Stream::Stderr, |text| text.red());
    match error {
        CommandError::OutputClosed => {}
        CommandError::Config(ConfigErrors(errors)) => {
            errors.iter().for_each(|error| {
                tell(format_args!("{label} {}", EscapedText(&error.to_string())))
            });
        }
        CommandError::Other(error) => tell(format_args!(
            "{label} {}",
            EscapedText(&with_advice(&**error))
        )),
    }
}

/// The error with its causes and advice.
fn with_advice(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text + &advice(error)
}
