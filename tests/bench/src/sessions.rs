//! `cargo xtask bench sessions`: what a session takes, and what finding it costs, from a thousand to a million.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

/// What a live session may take, all told.
const MOST_BYTES: usize = 500;

/// What opening the identifier of a session of another process may take, and adopting the session.
const MOST_UNSEAL_NS: f64 = 1_000.0;
const MOST_ADOPT_NS: f64 = 3_000.0;

#[derive(Deserialize)]
struct Row {
    sessions: usize,
    allocated_bytes: usize,
    resident_bytes: usize,
    lookup_ns: f64,
    any_lookup_ns: f64,
    unseal_ns: f64,
    adopt_ns: f64,
    allocations: u64,
}

pub(super) fn run() -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["bench", "--quiet", "--package", "portcullis-session", "--bench", "growth"]).stderr(Stdio::inherit());
    let output = command.output().context("cargo does not start")?;
    ensure!(output.status.success(), "the benchmark of sessions failed");
    let rows: Vec<Row> = serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect::<Result<_, _>>()?;
    println!(
        "{:>10} {:>11} {:>11} {:>10} {:>11} {:>10} {:>10} {:>12}",
        "sessions", "allocated", "resident", "lookup", "any lookup", "unseal", "adopt", "allocations"
    );
    for row in &rows {
        println!(
            "{:>10} {:>9} B {:>9} B {:>7.0} ns {:>8.0} ns {:>7.0} ns {:>7.0} ns {:>12}",
            row.sessions,
            row.allocated_bytes,
            row.resident_bytes,
            row.lookup_ns,
            row.any_lookup_ns,
            row.unseal_ns,
            row.adopt_ns,
            row.allocations
        );
    }
    let fits = |row: &Row| row.allocated_bytes.max(row.resident_bytes) <= MOST_BYTES && row.allocations == 0;
    ensure!(rows.iter().all(fits), "a session takes more than {MOST_BYTES} B, or finding it allocates");
    let is_fast = |row: &Row| row.unseal_ns < MOST_UNSEAL_NS && row.adopt_ns < MOST_ADOPT_NS;
    ensure!(
        rows.iter().all(is_fast),
        "opening an identifier takes more than {MOST_UNSEAL_NS} ns, or adopting its session more than {MOST_ADOPT_NS} ns"
    );
    Ok(())
}
