//! Logging to standard error.

mod escape;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsStr,
    fmt,
    io::{self, IsTerminal as _},
    time::Duration,
};

use portcullis_metadata::{Clock as _, SystemClock};
use thiserror::Error;
use tracing::{Level, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, ParseError, Targets, filter_fn},
    fmt::{MakeWriter, format::Writer, time::FormatTime},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use escape::{EscapedFields, EscapedJson};

use crate::timestamp;

/// The variable that chooses what is logged, in the syntax of
/// `tracing_subscriber::filter::Targets`.
const FILTER_VARIABLE: &str = "PORTCULLIS_LOG";
/// How the targets of this workspace's crates begin.
const TARGETS: &str = "portcullis";

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text, colored on a terminal.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// `PORTCULLIS_LOG` is not a filter, or logs nothing of this program.
#[derive(Debug, Error)]
#[error("{FILTER_VARIABLE} {0}")]
pub struct FilterError(FilterProblem);

#[derive(Debug, Error)]
enum FilterProblem {
    #[error("is not a log filter; try `info` or `portcullis=debug`")]
    Syntax(#[source] Option<ParseError>),
    #[error("has the unknown level {0:?}; write error, warn, info, debug, trace or off")]
    Level(String),
}

/// Starts logging for the whole process. `level` applies unless `PORTCULLIS_LOG` is set. `writer`
/// returns standard error, or what changes the lines on their way there; each write has one whole
/// line.
///
/// # Errors
/// Fails when `PORTCULLIS_LOG` is not a filter, or has a word that is not a level in place of one,
/// so that nothing would be logged.
///
/// # Panics
/// Panics when the process already has a subscriber.
pub fn start<W: io::Write + 'static>(
    format: LogFormat,
    level: &str,
    writer: fn() -> W,
) -> Result<(), FilterError> {
    let filter = filter(std::env::var_os(FILTER_VARIABLE).as_deref(), level)?;
    let layer = lines(
        format,
        writer,
        is_colored(
            io::stderr().is_terminal(),
            std::env::var_os("NO_COLOR").as_deref(),
        ),
    );
    tracing_subscriber::registry()
        .with(layer.with_filter(filter).with_filter(filter_fn(is_allowed)))
        .init();
    Ok(())
}

/// Parses the value of `PORTCULLIS_LOG`; the default is `level`.
fn filter(configured: Option<&OsStr>, level: &str) -> Result<Targets, FilterError> {
    let directives = configured
        .map_or(Some(level), OsStr::to_str)
        .ok_or(FilterError(FilterProblem::Syntax(None)))?;
    let filter = directives
        .parse()
        .map_err(|error| FilterError(FilterProblem::Syntax(Some(error))))?;
    match unknown_level(directives) {
        Some(word) => Err(FilterError(FilterProblem::Level(word.to_owned()))),
        None => Ok(filter),
    }
}

/// Returns the first word that is read as the name of a library, and was meant as a level: no part
/// of the filter is a level or about this program, so that none of its lines would be logged.
fn unknown_level(directives: &str) -> Option<&str> {
    let parts = || directives.split(',').map(str::trim);
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let is_meant = |part: &str| is_level(part) || part.starts_with(TARGETS);
    if parts().any(is_meant) {
        return None;
    }
    parts().find_map(|part| match part.split_once('=') {
        // A library with its level.
        Some((name, _)) if !is_level(name) => None,
        Some((name, _)) => Some(name),
        None => Some(part),
    })
}

/// Whether log lines have colors: on a terminal, unless `NO_COLOR` is set and not empty
/// (<https://no-color.org>).
fn is_colored(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Writes each event as one line, in which text from other parties is escaped.
fn lines<S, W>(format: LogFormat, writer: W, is_colored: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_timer(LineTime(SystemClock::new()));
    match format {
        LogFormat::Human => layer
            .fmt_fields(EscapedFields)
            .with_writer(writer)
            .with_ansi(is_colored)
            .boxed(),
        LogFormat::Json => layer
            .json()
            .flatten_event(true)
            .with_writer(EscapedJson(writer))
            .boxed(),
    }
}

/// Returns whether an event may be logged. Below the level of errors, only this workspace's crates
/// log, regardless of the filter: libraries log whole request heads, tokens included.
fn is_allowed(metadata: &tracing::Metadata<'_>) -> bool {
    metadata.target().starts_with(TARGETS) || *metadata.level() == Level::ERROR
}

/// The time of a line, in the format of access lines.
struct LineTime(SystemClock);

impl FormatTime for LineTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        out.write_str(timestamp(self.0.now()).as_str())
    }
}

/// Returns a duration in microseconds.
pub fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
