//! The steps of a walk, told as they happen.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use tokio::time::timeout;

use crate::checklist::{Checklist, Outcome, Unit};

/// How long one step may take. Each takes milliseconds, so that this is long even on a busy machine; it is shorter
/// than the 10 s after which a shutdown cuts requests off, which would not be in order here.
const LIMIT: Duration = Duration::from_secs(8);

/// The steps so far.
pub(super) struct Progress(Checklist);

impl Progress {
    pub(super) fn new() -> Self {
        Self(Checklist::new(Unit::Milliseconds))
    }

    /// Runs a step, and prints how it went.
    pub(super) async fn step<T>(
        &mut self,
        name: &'static str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let started = Instant::now();
        let result = timeout(LIMIT, step).await;
        let result = result.unwrap_or_else(|_| Err(anyhow!("expected an end within {LIMIT:?}, got none")));
        let outcome = if result.is_ok() { Outcome::Passed } else { Outcome::Failed };
        println!("{}", self.0.add(name, outcome, started.elapsed()));
        if let Err(error) = &result {
            println!("        {error:#}");
        }
        result.with_context(|| format!("step `{name}`"))
    }

    /// All steps below each other.
    pub(super) fn table(&self) -> String {
        self.0.table()
    }
}
