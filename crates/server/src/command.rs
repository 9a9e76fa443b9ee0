//! The commands, one file each, and the report of their errors.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod client_document;
pub(crate) mod completions;
mod config_file;
mod confirmation;
pub(crate) mod connect;
#[cfg(feature = "dev")]
pub(crate) mod demo;
pub(crate) mod doctor;
mod end_signals;
mod escaped_json;
mod exchange;
pub(crate) mod health;
#[cfg(feature = "dev")]
pub(crate) mod idp;
pub(crate) mod import_mcp_remote;
pub(crate) mod init;
pub(crate) mod login;
#[cfg(feature = "manual")]
pub(crate) mod manual;
pub(crate) mod mcp_remote;
mod raw_json;
pub(crate) mod serve;
mod sign_in;
pub(crate) mod stored;
mod text;

use owo_colors::{OwoColorize as _, Stream};
use portcullis_config::ConfigErrors;
use portcullis_metadata::EscapedText;

use text::{counted, is_output_closed, print, print_json, print_note, print_warning, tell};

/// Prints an error on one line, or the errors of a configuration on one line each. Text from other parties is escaped. That
/// standard output is closed, as by `head`, is not printed.
pub(crate) fn report(error: &anyhow::Error) {
    if is_output_closed(error) {
        return;
    }
    let label = "error:".if_supports_color(Stream::Stderr, |text| text.red());
    if let Some(ConfigErrors(errors)) = error.downcast_ref() {
        errors.iter().for_each(|error| tell(format_args!("{label} {}", EscapedText(&error.to_string()))));
        return;
    }
    tell(format_args!("{label} {}", EscapedText(&with_advice(error))));
}

/// The error with its causes and advice.
fn with_advice(error: &anyhow::Error) -> String {
    match portcullis_client::advice(error.as_ref()) {
        Some(advice) => format!("{error:#}; {advice}"),
        None => format!("{error:#}"),
    }
}

/// The runtime for everything except the requests of `serve`. It runs on the main thread.
pub(crate) fn control_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
