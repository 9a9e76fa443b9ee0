//! [`Cell`]: the result of one trial in a table.

use std::{fmt, time::Instant};

use anyhow::{anyhow, ensure};
use serde::Serialize;
use tokio::time::error::Elapsed;

/// What one trial of a table showed.
#[derive(Clone, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub(crate) enum Cell {
    Passed {
        seconds: f64,
    },
    Failed {
        reason: String,
    },
    /// What it needs cannot be installed here.
    Skipped {
        reason: String,
    },
}

impl Cell {
    /// Waits for the result of a trial.
    pub(crate) async fn of(
        trial: impl Future<Output = Result<anyhow::Result<()>, Elapsed>>,
    ) -> Self {
        let started = Instant::now();
        match trial
            .await
            .unwrap_or_else(|_| Err(anyhow!("it did not end in time")))
        {
            Ok(()) => Self::Passed {
                seconds: started.elapsed().as_secs_f64(),
            },
            Err(error) => Self::failed(&error),
        }
    }

    pub(crate) fn failed(error: &anyhow::Error) -> Self {
        Self::Failed {
            reason: format!("{error:#}"),
        }
    }

    /// Checks that a cell passed, and none failed. Fails when a cell failed, or all were skipped.
    pub(crate) fn check_all<'a>(
        cells: impl Iterator<Item = &'a Self> + Clone,
    ) -> anyhow::Result<()> {
        let failed = cells
            .clone()
            .filter(|cell| matches!(cell, Self::Failed { .. }))
            .count();
        ensure!(failed == 0, "{failed} trials failed");
        ensure!(
            cells
                .clone()
                .any(|cell| matches!(cell, Self::Passed { .. })),
            "every trial was skipped"
        );
        Ok(())
    }

    /// Returns why it failed or was skipped.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed { .. } => None,
            Self::Failed { reason } | Self::Skipped { reason } => Some(reason),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed { seconds } => f.pad(&format!("passed {seconds:.1} s")),
            Self::Failed { .. } => f.pad("FAILED"),
            Self::Skipped { .. } => f.pad("skipped"),
        }
    }
}
