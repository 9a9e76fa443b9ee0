//! What the process says about itself, on standard error.

mod access;
pub(crate) mod text;

use std::{
    fmt::{self, Display},
    io::{self, IsTerminal as _},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Context as _;
use clap::ValueEnum;
use portcullis_metadata::{Clock as _, SystemClock, UnixTime};
use tracing::Level;
use tracing_subscriber::{
    Layer as _,
    filter::{Targets, filter_fn},
    fmt::{format::Writer, time::FormatTime},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

pub(crate) use access::{AccessLog, Line, LoggedPrincipal};

/// The variable that chooses what is logged, in the syntax of `tracing_subscriber::filter::Targets`.
const FILTER_VARIABLE: &str = "PORTCULLIS_LOG";

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people; coloured on a terminal.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Starts logging to standard error.
///
/// # Errors
/// When `PORTCULLIS_LOG` is no filter.
pub(crate) fn start(format: LogFormat) -> anyhow::Result<()> {
    let directives = std::env::var(FILTER_VARIABLE).unwrap_or_else(|_| "info".to_owned());
    let filter = directives
        .parse::<Targets>()
        .with_context(|| format!("{FILTER_VARIABLE} is no log filter; try `info` or `portcullis=debug`"))?;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_target(false)
        .with_timer(Timestamp(SystemClock::new()));
    let layer = match format {
        LogFormat::Human => layer.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(filter).with_filter(filter_fn(may_speak))).init();
    Ok(())
}

/// The libraries below print whole heads at their debug and trace levels, tokens included, and messages at others: only
/// this workspace's own crates speak below the level of errors, whatever the filter says.
fn may_speak(metadata: &tracing::Metadata<'_>) -> bool {
    metadata.target().starts_with("portcullis") || *metadata.level() == Level::ERROR
}

/// The time as access lines have it.
struct Timestamp(SystemClock);

impl FormatTime for Timestamp {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{}", timestamp(self.0.unix()))
    }
}

/// How times are written.
pub(crate) fn timestamp(time: UnixTime) -> impl Display {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(time.as_millis()))
}
