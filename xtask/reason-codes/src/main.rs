//! Writes docs/use/reason-codes.md, or checks it. `cargo xtask reason-codes` runs this.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

mod codes;
mod page;

use std::fs;

use anyhow::{Context as _, ensure};
use clap::Parser;
use xtask::workspace;

use self::page::PAGE;

/// Write docs/use/reason-codes.md from the reason codes of the crates and
/// docs/contribute/reason-codes.toml.
#[derive(Parser)]
#[command(
    name = "cargo xtask reason-codes",
    bin_name = "cargo xtask reason-codes"
)]
struct Arguments {
    /// Fail when the page is out of date, instead of writing it.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let Arguments { check } = Arguments::parse();
    let page = page::current()?;
    let path = workspace::root().join(PAGE);
    if check {
        let is_current = fs::read_to_string(&path).unwrap_or_default() == page;
        ensure!(
            is_current,
            "{PAGE} is out of date; run `cargo xtask reason-codes` and commit it"
        );
    } else {
        fs::write(&path, &page).with_context(|| format!("{PAGE} cannot be written"))?;
    }
    println!("reason codes: {}", page.matches("\n| `").count());
    Ok(())
}
