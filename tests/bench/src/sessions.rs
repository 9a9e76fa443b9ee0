//! `cargo xtask bench sessions`: the memory of a session and the time of a lookup, for 1,000 to
//! 1,000,000 sessions.

use std::process::Stdio;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use xtask::workspace;

/// The maximum memory per session, with its entries in the tables.
const MAX_BYTES: usize = 600;

/// The maximum time to open the identifier of a session of another process.
const MAX_UNSEAL_NS: f64 = 1_000.0;
/// The maximum time to open such an identifier and to add the session to the table.
const MAX_ADOPT_NS: f64 = 3_000.0;

/// The figures for one number of sessions, as the benchmark of `portcullis-session` prints them.
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

/// Runs the benchmark and prints its figures. Fails when a goal is missed.
pub(super) fn run() -> anyhow::Result<()> {
    let mut command = workspace::cargo(&[
        "bench",
        "--quiet",
        "--package",
        "portcullis-session",
        "--bench",
        "growth",
    ]);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    ensure!(output.status.success(), "the benchmark of sessions failed");
    let rows: Vec<Row> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .collect::<Result<_, _>>()?;
    ensure!(!rows.is_empty(), "the benchmark of sessions has no figures");
    print_table(&rows);
    let fits = |row: &Row| {
        row.allocated_bytes.max(row.resident_bytes) <= MAX_BYTES && row.allocations == 0
    };
    ensure!(
        rows.iter().all(fits),
        "a session needs more than {MAX_BYTES} B, or a lookup allocates"
    );
    let is_fast = |row: &Row| row.unseal_ns < MAX_UNSEAL_NS && row.adopt_ns < MAX_ADOPT_NS;
    ensure!(
        rows.iter().all(is_fast),
        "opening an identifier takes more than {MAX_UNSEAL_NS} ns, or adopting its session more than {MAX_ADOPT_NS} ns"
    );
    Ok(())
}

/// Prints one line per number of sessions.
fn print_table(rows: &[Row]) {
    println!(
        "{:>10} {:>11} {:>11} {:>10} {:>11} {:>10} {:>10} {:>12}",
        "sessions",
        "allocated",
        "resident",
        "lookup",
        "any lookup",
        "unseal",
        "adopt",
        "allocations"
    );
    for row in rows {
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
}
