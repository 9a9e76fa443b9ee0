//! Writes the pages of reason codes, or checks them. `cargo xtask reason-codes` runs this.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

mod codes;
mod page;

use std::fs;

use anyhow::{Context as _, ensure};
use clap::Parser;
use xtask::workspace;

use self::page::Written;

/// Write the pages of reason codes in docs/use from the codes of the crates and
/// docs/contribute/reason-codes.toml.
#[derive(Parser)]
#[command(
    name = "cargo xtask reason-codes",
    bin_name = "cargo xtask reason-codes"
)]
struct Arguments {
    /// Fail when a page is out of date, instead of writing it.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let Arguments { check } = Arguments::parse();
    let mut count = 0;
    for Written { file, content } in page::current()? {
        let path = workspace::root().join(&file);
        if check {
            let is_current = fs::read_to_string(&path).unwrap_or_default() == content;
            ensure!(
                is_current,
                "{file} is out of date; run `cargo xtask reason-codes` and commit it"
            );
        } else {
            fs::write(&path, &content).with_context(|| format!("{file} cannot be written"))?;
        }
        count += content.matches("\n| `").count();
    }
    println!("reason codes: {count}");
    Ok(())
}
