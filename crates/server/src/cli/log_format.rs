//! The option `--log-format`.

use clap::ValueEnum;
use portcullis_telemetry::LogFormat;

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum LogFormatOption {
    /// Text, colored on a terminal.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

impl From<LogFormatOption> for LogFormat {
    fn from(option: LogFormatOption) -> Self {
        match option {
            LogFormatOption::Human => Self::Human,
            LogFormatOption::Json => Self::Json,
        }
    }
}
