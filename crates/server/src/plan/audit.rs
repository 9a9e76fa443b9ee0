//! `[audit]`: where decisions are written down.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::{
    audit,
    config::{Audit, AuditTarget},
};

/// An audit trail that can be kept.
#[derive(Clone, Debug)]
pub(crate) struct AuditPlan {
    pub(crate) target: AuditTarget,
    /// Bytes of records that wait to be written.
    pub(crate) queue: usize,
    /// How often is told what was used; only at the end when zero.
    pub(crate) usage_interval: Duration,
    /// Rows of principal, resource and tool that are counted apart.
    pub(crate) usage_rows: usize,
}

/// # Errors
/// When a value is out of its range, or the file could not be written to.
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
            "audit.target names no file; write {{ file = \"/path\" }}, or \"stdout\""
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
