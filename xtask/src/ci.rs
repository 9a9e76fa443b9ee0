//! `cargo xtask ci`: every check that a change must pass.

use std::time::Instant;

use anyhow::{Context, bail};

use crate::workspace;

/// The checks by name, in the order in which they run. Each is a call of cargo.
const CHECKS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("layers", &["xtask", "layers"]),
    ("requirements", &["xtask", "requirements", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]),
    ("tests", &["test", "--workspace", "--locked"]),
    ("docs", &["doc", "--workspace", "--no-deps", "--locked"]),
    ("supply chain", &["deny", "--workspace", "check", "bans", "licenses", "sources"]),
];

pub(crate) fn run() -> anyhow::Result<()> {
    for (name, arguments) in CHECKS {
        let started = Instant::now();
        println!("== {name}: cargo {}", arguments.join(" "));
        let status = workspace::cargo(arguments)
            .env("RUSTDOCFLAGS", "--deny warnings")
            .status()
            .with_context(|| format!("{name} could not be started"))?;
        if !status.success() {
            bail!("{name} failed; to repeat it: cargo {}", arguments.join(" "));
        }
        println!("== {name}: passed in {} s", started.elapsed().as_secs());
    }
    Ok(())
}
