//! [`Progress`]: the steps of a run, printed as they complete.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use tokio::time::timeout;

use xtask::checklist::{Checklist, Outcome, Unit};

/// The steps so far.
pub(crate) struct Progress {
    list: Checklist,
    limit: Duration,
    on_standard_error: bool,
}

impl Progress {
    /// Creates a list of steps with this time limit each.
    pub(crate) fn new(unit: Unit, limit: Duration) -> Self {
        Self {
            list: Checklist::new(unit),
            limit,
            on_standard_error: false,
        }
    }

    /// As [`new`](Self::new), printed to standard error.
    pub(crate) fn on_standard_error(unit: Unit, limit: Duration) -> Self {
        Self {
            on_standard_error: true,
            ..Self::new(unit, limit)
        }
    }

    /// Runs a step and prints its result.
    pub(crate) async fn step<T>(
        &mut self,
        name: &'static str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.step_within(self.limit, name, step).await
    }

    /// As [`step`](Self::step), with another time limit.
    pub(crate) async fn step_within<T>(
        &mut self,
        limit: Duration,
        name: &'static str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let started = Instant::now();
        let result = timeout(limit, step).await;
        let result =
            result.unwrap_or_else(|_| Err(anyhow!("expected an end within {limit:?}, got none")));
        let outcome = if result.is_ok() {
            Outcome::Passed
        } else {
            Outcome::Failed
        };
        let line = self.list.add(name, outcome, started.elapsed());
        self.print(&line);
        if let Err(error) = &result {
            self.print(&format!("        {error:#}"));
        }
        result.with_context(|| format!("step `{name}`"))
    }

    /// Prints that a step is skipped, with the reason.
    pub(crate) fn skip(&mut self, name: &'static str, reason: &str) {
        let line = self.list.add(name, Outcome::NotRun, Duration::ZERO);
        self.print(&format!("{line}\n        {reason}"));
    }

    fn print(&self, text: &str) {
        if self.on_standard_error {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }

    /// Returns the table of all steps.
    pub(crate) fn table(&self) -> String {
        self.list.table()
    }
}
