//! Writes the page of the keys of the configuration, or checks it. `cargo xtask configuration-keys`
//! runs this.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

mod page;
mod schema;
mod value;

use std::fs;

use anyhow::{Context as _, ensure};
use clap::Parser;
use xtask::workspace;

/// The page, relative to the workspace's root.
const PAGE: &str = "docs/use/configuration-keys.md";

/// Write docs/use/configuration-keys.md from the schema with which `portcullis check` reads files.
#[derive(Parser)]
#[command(
    name = "cargo xtask configuration-keys",
    bin_name = "cargo xtask configuration-keys"
)]
struct Arguments {
    /// Fail when the page is out of date, instead of writing it.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let Arguments { check } = Arguments::parse();
    let page = page::of(portcullis_config::schema());
    let path = workspace::root().join(PAGE);
    if check {
        ensure!(
            fs::read_to_string(&path).unwrap_or_default() == page,
            "{PAGE} is out of date; run `cargo xtask configuration-keys` and commit it"
        );
    } else {
        fs::write(&path, &page).with_context(|| format!("{PAGE} cannot be written"))?;
    }
    println!("keys: {}", page.matches("\n| `").count());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: the page has every key of the schema, and is current.
    #[test]
    fn the_page_is_current() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap();
        let current = page::of(portcullis_config::schema());
        assert_eq!(page, current, "run `cargo xtask configuration-keys`");
    }
}
