//! The audit trail: validation of `[audit]`.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::{
    audit,
    config::{Audit, AuditTarget},
};

/// A validated audit trail.
#[derive(Clone, Debug)]
pub(crate) struct AuditPlan {
    pub(crate) target: AuditTarget,
    /// The maximum size of queued records in bytes.
    pub(crate) queue: usize,
    /// The interval of usage records. With zero, usage is recorded at the end only.
    pub(crate) usage_interval: Duration,
    /// The number of rows of principal, resource and tool that are counted separately.
    pub(crate) usage_rows: usize,
}

/// # Errors
/// Fails when a value is out of range, or the file cannot be written.
pub(super) fn plan(configured: &Audit) -> anyhow::Result<AuditPlan> {
    let within = |name: &str, value: usize, low: usize, high: usize| {
        ensure!((low..=high).contains(&value), "audit.{name} = {value} is outside {low} to {high}");
        Ok(())
    };
    within("queue", configured.queue, 64 << 10, 1 << 30)?;
    within("usage_rows", configured.usage_rows, 16, 1_000_000)?;
    let seconds = configured.usage_interval.0.as_secs();
    ensure!(
        configured.usage_interval.0.is_zero() || (1..=24 * 60 * 60).contains(&seconds),
        "audit.usage_interval = \"{}\" is neither within 1s to 24h nor 0s, which reports usage at the end only",
        configured.usage_interval
    );
    if let AuditTarget::File(file) = &configured.target {
        ensure!(
            !file.as_os_str().is_empty(),
            "audit.target has an empty path; write {{ file = \"/path\" }}, or \"stdout\""
        );
        audit::dry_run(file).context("audit.target")?;
    }
    Ok(AuditPlan {
        target: configured.target.clone(),
        queue: configured.queue,
        usage_interval: configured.usage_interval.0,
        usage_rows: configured.usage_rows,
    })
}
