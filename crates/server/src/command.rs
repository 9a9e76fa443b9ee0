//! The commands, one file each.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "commands speak to the person at the terminal")]

pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod idp;
pub(crate) mod serve;

use owo_colors::{OwoColorize as _, Stream};

/// Prints what went wrong, on one line.
pub(crate) fn report(error: &anyhow::Error) {
    eprintln!("{} {error:#}", "error:".if_supports_color(Stream::Stderr, |text| text.red()));
}

/// The runtime for everything that is not a request of the data path. It lives on the main thread.
pub(crate) fn control_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
