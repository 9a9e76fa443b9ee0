//! [`Sample`]: the memory, descriptors, tasks, sessions and streams of the server at one time.

use std::{fmt, time::Duration};

use anyhow::Context as _;
use serde::Serialize;

/// What the server used at one time.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Sample {
    /// The time since the start.
    pub(super) seconds: f64,
    /// Anonymous memory in bytes. Resident memory also has pages of the program's file, which the
    /// system reads and drops as it likes.
    pub(super) memory: f64,
    resident: f64,
    pub(super) descriptors: f64,
    pub(super) tasks: f64,
    sessions: f64,
    streams: f64,
}

impl Sample {
    /// Reads a sample from the text of the metrics. Fails if a metric is missing or not a number.
    pub(super) fn read(
        metrics: &str,
        elapsed: Duration,
        anonymous_memory: u64,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            seconds: elapsed.as_secs_f64(),
            memory: anonymous_memory as f64,
            resident: value(metrics, "process_resident_memory_bytes")?,
            descriptors: value(metrics, "process_open_fds")?,
            tasks: value(metrics, "portcullis_tasks")?,
            sessions: value(metrics, "portcullis_sessions")?,
            streams: value(metrics, "portcullis_streams")?,
        })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            descriptors,
            tasks,
            sessions,
            streams,
            ..
        } = self;
        let memory = self.memory / 1e6;
        let resident = self.resident / 1e6;
        write!(
            f,
            "{memory:.1} MB anonymous, {resident:.1} MB resident, {descriptors} descriptors, {tasks} tasks, "
        )?;
        write!(f, "{sessions} sessions, {streams} streams")
    }
}

/// Returns the value of a metric, which is named with its labels. Fails if the metric is missing or
/// not a number.
pub(super) fn value(metrics: &str, name: &str) -> anyhow::Result<f64> {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line
        .with_context(|| format!("the metrics have no {name}; the program is too old"))?
        .parse()?)
}

#[cfg(test)]
impl Sample {
    /// Returns a sample without sessions and streams.
    pub(super) fn new(seconds: f64, memory: f64, descriptors: f64, tasks: f64) -> Self {
        Self {
            seconds,
            memory,
            resident: 0.0,
            descriptors,
            tasks,
            sessions: 0.0,
            streams: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_whole_name() {
        let text = "# HELP a b\na_max 7\na{x=\"y\"} 3\na 2\n";
        assert_eq!(value(text, "a").unwrap(), 2.0);
        assert_eq!(value(text, "a{x=\"y\"}").unwrap(), 3.0);
        assert!(value(text, "b").is_err());
    }
}
