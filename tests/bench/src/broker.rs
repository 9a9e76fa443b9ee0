//! `cargo xtask bench broker`: the CPU time of a token response, and the memory and the start of a
//! broker with 10,000 clients and 100,000 grants.

use std::process::Stdio;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use xtask::workspace;

/// The maximum CPU time of a token response, which half of the responses do not exceed.
const MAX_RESPONSE_US: u64 = 1_500;
/// The maximum memory of a broker that has opened its file.
const MAX_RESIDENT: u64 = 100 << 20;
/// The maximum time until it can answer.
const MAX_START_MS: u64 = 2_000;

/// A line of the benchmark of `portcullis-broker`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    Responses(Responses),
    File(File),
    Memory(Memory),
}

#[derive(Deserialize)]
struct Responses {
    store: String,
    request: String,
    responses: usize,
    p50_us: u64,
    p99_us: u64,
}

#[derive(Deserialize)]
struct File {
    start_ms: u64,
    start_cpu_ms: u64,
    resident_bytes: u64,
    resident_after_reading_bytes: u64,
    file_bytes: u64,
}

#[derive(Deserialize)]
struct Memory {
    resident_bytes: u64,
    resident_without_bytes: u64,
}

/// Runs the benchmark and prints its figures. Fails when a goal is missed.
pub(super) fn run() -> anyhow::Result<()> {
    let mut command = workspace::cargo(&[
        "bench",
        "--quiet",
        "--package",
        "portcullis-broker",
        "--bench",
        "tokens",
    ]);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    ensure!(
        output.status.success(),
        "the benchmark of the broker failed"
    );
    let rows: Vec<Row> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .collect::<Result<_, _>>()?;
    ensure!(
        !rows.is_empty(),
        "the benchmark of the broker has no figures"
    );
    rows.iter().for_each(print);
    ensure!(
        rows.iter().all(is_within_goals),
        "a token response takes more than {MAX_RESPONSE_US} us, or a start more than {MAX_START_MS} ms or {MAX_RESIDENT} B"
    );
    Ok(())
}

fn is_within_goals(row: &Row) -> bool {
    match row {
        Row::Responses(responses) => responses.p50_us <= MAX_RESPONSE_US,
        Row::File(file) => {
            file.start_ms <= MAX_START_MS && file.resident_after_reading_bytes <= MAX_RESIDENT
        }
        // Servers that keep their records in memory are small ones.
        Row::Memory(_) => true,
    }
}

fn print(row: &Row) {
    const MB: u64 = 1 << 20;
    match row {
        Row::Responses(row) => println!(
            "{} responses for a {}, records in {}: {} us, 99 % within {} us",
            row.responses,
            row.request,
            match row.store.as_str() {
                "file" => "a file",
                other => other,
            },
            row.p50_us,
            row.p99_us
        ),
        Row::File(file) => println!(
            "start with a file of {} MB: {} ms, CPU time {} ms; memory {} MB, after reading all grants {} MB",
            file.file_bytes / MB,
            file.start_ms,
            file.start_cpu_ms,
            file.resident_bytes / MB,
            file.resident_after_reading_bytes / MB
        ),
        Row::Memory(memory) => println!(
            "memory with records in memory: {} MB, without them {} MB",
            memory.resident_bytes / MB,
            memory.resident_without_bytes / MB
        ),
    }
}
