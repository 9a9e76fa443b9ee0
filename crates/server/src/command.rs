//! The commands, one file each.

pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod client_document;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod idp;
pub(crate) mod login;
pub(crate) mod serve;
mod sign_in;

use std::{
    fmt::Display,
    io::{self, Write as _},
};

use owo_colors::{OwoColorize as _, Stream};

/// Prints what went wrong, on one line. A reader of our output that went away, such as `head`, is nothing wrong.
pub(crate) fn report(error: &anyhow::Error) {
    if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return;
    }
    tell(format_args!("{} {error:#}", "error:".if_supports_color(Stream::Stderr, |text| text.red())));
}

/// Writes a line to standard output: what the command was asked for.
fn print(line: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// Writes a line to standard error: what a person wants to know beside it.
fn tell(line: impl Display) {
    // Standard error that is gone leaves nowhere to say so.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// The runtime for everything that is not a request of the data path. It lives on the main thread.
pub(crate) fn control_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
