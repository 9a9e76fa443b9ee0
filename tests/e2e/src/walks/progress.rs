//! The steps of a walk, told as they happen.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use tokio::time::timeout;

use xtask::checklist::{Checklist, Outcome, Unit};

/// The steps so far.
pub(super) struct Progress {
    list: Checklist,
    limit: Duration,
    on_standard_error: bool,
}

impl Progress {
    /// Steps that may each take this long.
    pub(super) fn new(unit: Unit, limit: Duration) -> Self {
        Self { list: Checklist::new(unit), limit, on_standard_error: false }
    }

    /// As [`new`](Self::new), printed to standard error.
    pub(super) fn on_standard_error(unit: Unit, limit: Duration) -> Self {
        Self { on_standard_error: true, ..Self::new(unit, limit) }
    }

    /// Runs a step, and prints how it went.
    pub(super) async fn step<T>(
        &mut self,
        name: &'static str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.step_within(self.limit, name, step).await
    }

    /// Runs a step that may take another time, and prints how it went.
    pub(super) async fn step_within<T>(
        &mut self,
        limit: Duration,
        name: &'static str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let started = Instant::now();
        let result = timeout(limit, step).await;
        let result = result.unwrap_or_else(|_| Err(anyhow!("expected an end within {limit:?}, got none")));
        let outcome = if result.is_ok() { Outcome::Passed } else { Outcome::Failed };
        let line = self.list.add(name, outcome, started.elapsed());
        self.print(&line);
        if let Err(error) = &result {
            self.print(&format!("        {error:#}"));
        }
        result.with_context(|| format!("step `{name}`"))
    }

    /// Tells that something is left out, and why.
    pub(super) fn skip(&mut self, name: &'static str, why: &str) {
        let line = self.list.add(name, Outcome::NotRun, Duration::ZERO);
        self.print(&format!("{line}\n        {why}"));
    }

    fn print(&self, text: &str) {
        if self.on_standard_error {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }

    /// All steps below each other.
    pub(super) fn table(&self) -> String {
        self.list.table()
    }
}
