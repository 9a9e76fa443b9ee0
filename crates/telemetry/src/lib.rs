#![doc = include_str!("../README.md")]

mod access;
mod effect;
pub mod json;
pub mod log_queue;
mod logging;
pub mod metrics;
mod rejections;
#[cfg(test)]
mod testing;
mod text;
mod timestamp;
mod traces;

pub use access::{AccessLog, Details, Line};
pub use effect::Effect;
pub use logging::{FilterError, LogFormat, microseconds, start};
pub use rejections::{RejectionSource, Rejections, SummedRejections};
pub use text::{MAX_TEXT, truncated};
pub use timestamp::{Timestamp, timestamp};
pub use traces::{ExportSettings, TraceExport, Traces};
