//! `cargo xtask api`: a snapshot of the public API of each library crate.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use public_api::Builder;

use xtask::{crate_rows, workspace};

/// The folder of the snapshots, relative to the workspace's root.
const FOLDER: &str = "docs/contribute/api";
/// The maximum number of differing lines that are printed for each crate.
const MAX_PRINTED: usize = 20;

/// Writes the snapshots, or checks them. Fails when a crate cannot be documented, or when `check`
/// is set and a snapshot differs.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let folder = workspace::root().join(FOLDER);
    let documentation = workspace::metadata()?.target_directory.join("doc");
    document()?;
    let mut changed = Vec::new();
    for name in crate_rows::libraries() {
        let api = public_api(name, &documentation)?;
        let file = folder.join(format!("{name}.txt"));
        let snapshot = fs::read_to_string(&file).unwrap_or_default();
        if api == snapshot {
            continue;
        }
        changed.push(name);
        if check {
            println!("{name}:\n{}", difference(&snapshot, &api));
        } else {
            fs::create_dir_all(&folder)?;
            fs::write(&file, &api)
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    if check {
        let changed = changed.join(", ");
        ensure!(
            changed.is_empty(),
            "the public API differs from {FOLDER}: {changed}; run `cargo xtask api`"
        );
    } else {
        println!("{FOLDER}: {} snapshots written", changed.len());
    }
    Ok(())
}

/// Writes the documentation of all libraries of the workspace as JSON. Only rustdoc gets its
/// options, in variables, so that the dependencies are those of the check `docs`. Fails when cargo
/// fails.
fn document() -> anyhow::Result<()> {
    let script = workspace::root().join("xtask/src/api/rustdoc.sh");
    let status = workspace::cargo(&["doc", "--workspace", "--lib", "--no-deps"])
        .args(["--quiet", "--locked"])
        .env("RUSTDOC", script)
        .env(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json --cap-lints allow",
        )
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "cargo doc ended with {status}");
    Ok(())
}

/// Reads the public items of a library crate, one per line, from its documentation in `folder`.
fn public_api(name: &str, folder: &Path) -> anyhow::Result<String> {
    let json = folder.join(format!("{}.json", name.replace('-', "_")));
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("the documentation of {name} cannot be read"))?;
    Ok(api.to_string())
}

/// Returns the first lines that only one of two snapshots has.
fn difference(old: &str, new: &str) -> String {
    let only_in = |sign: char, one: &str, other: &str| {
        let other: Vec<_> = other.lines().collect();
        let lines = one
            .lines()
            .filter(|line| !other.contains(line))
            .map(|line| format!("  {sign} {line}"));
        lines.collect::<Vec<_>>()
    };
    let mut lines = [only_in('-', old, new), only_in('+', new, old)].concat();
    let count = lines.len();
    lines.truncate(MAX_PRINTED);
    if count > MAX_PRINTED {
        lines.push(format!("  and {} more lines", count - MAX_PRINTED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_lines_are_listed() {
        assert_eq!(difference("a\nb\nc\n", "a\nc\nd\n"), "  - b\n  + d");
        let many: String = (0..30).map(|number| format!("{number}\n")).collect();
        assert!(difference("", &many).ends_with("  and 10 more lines"));
    }
}
