//! [`Cell`]: the result of one trial in a table.

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Instant,
};

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
    /// Waits for the result of a trial. A panic is a failure.
    pub(crate) async fn of(
        trial: impl Future<Output = Result<anyhow::Result<()>, Elapsed>>,
    ) -> Self {
        let started = Instant::now();
        let trial = async {
            let result = trial.await;
            result.unwrap_or_else(|_| Err(anyhow!("it did not end in time")))
        };
        match catching_panics(trial).await {
            Ok(()) => Self::Passed {
                seconds: started.elapsed().as_secs_f64(),
            },
            Err(error) => Self::failed(&error),
        }
    }

    /// Waits for what a trial needs. Returns the cell of its failure, which may be a panic.
    pub(crate) async fn started<T>(start: impl Future<Output = T>) -> Result<T, Self> {
        let started = catching_panics(async { Ok(start.await) }).await;
        started.map_err(|error| Self::failed(&error))
    }

    /// Returns the cell of what cannot be installed.
    pub(crate) fn skipped(why: &anyhow::Error) -> Self {
        Self::Skipped {
            reason: format!("{why:#}"),
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

/// Waits for a result. A panic, by which the shared code of the tests reports an unexpected answer,
/// is an error.
pub(crate) async fn catching_panics<T>(
    trial: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let mut trial = pin!(trial);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| trial.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(anyhow!(message(&*panic)))))
    })
    .await
}

/// Returns the text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a text".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic in one trial does not end the others.
    #[tokio::test]
    async fn a_panic_is_a_failure() {
        let panics = |text: String| async move {
            tokio::task::yield_now().await;
            assert!(text.is_empty(), "unexpected: {text}");
            Ok(Ok(()))
        };
        assert!(Cell::of(panics(String::new())).await.reason().is_none());
        let reason = Cell::of(panics("an answer".to_owned())).await;
        assert_eq!(reason.reason(), Some("unexpected: an answer"));
    }
}
