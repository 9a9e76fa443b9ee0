//! `cargo xtask crates`: the number of dependencies and the compile time of each crate, as a
//! Markdown table.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};

use xtask::{crate_rows, workspace};

/// Prints the table. With `time`, each crate and its dependencies are compiled in an empty target
/// folder. Fails when cargo fails.
pub(crate) fn run(time: bool) -> anyhow::Result<()> {
    let folder = workspace::metadata()?.target_directory.join("compile-time");
    println!(
        "| crate | dependencies |{}",
        if time { " compile time |" } else { "" }
    );
    println!("|---|---|{}", if time { "---|" } else { "" });
    for name in crate_rows::crates() {
        let row = format!("| `{name}` | {} |", dependencies(name)?);
        if time {
            println!(
                "{row} {:.0} s |",
                compile_time(name, &folder)?.as_secs_f64()
            );
        } else {
            println!("{row}");
        }
    }
    Ok(())
}

/// Returns the number of crates that a crate is built with, itself not counted.
fn dependencies(name: &str) -> anyhow::Result<usize> {
    let tree = [
        "tree",
        "--locked",
        "--package",
        name,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--no-dedupe",
    ];
    let output = workspace::cargo(&tree)
        .output()
        .context("cargo could not be started")?;
    ensure!(
        output.status.success(),
        "cargo tree failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .collect::<BTreeSet<_>>()
        .len()
        .saturating_sub(1))
}

/// Measures a dev build from an empty target folder.
fn compile_time(name: &str, folder: &Path) -> anyhow::Result<Duration> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    let started = Instant::now();
    let mut build = workspace::cargo(&[
        "build",
        "--quiet",
        "--locked",
        "--package",
        name,
        "--target-dir",
    ]);
    let status = build
        .arg(folder)
        .status()
        .context("cargo could not be started")?;
    let elapsed = started.elapsed();
    ensure!(
        status.success(),
        "cargo build of {name} ended with {status}"
    );
    fs::remove_dir_all(folder)?;
    Ok(elapsed)
}
