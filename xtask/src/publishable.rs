//! The check of `cargo xtask ci` that every published crate can be packaged.

use anyhow::{Context as _, bail, ensure};
use xtask::{crate_rows, workspace};

/// Packages the published crates as `cargo publish` does, but compiles none and resolves no
/// dependencies, which takes seconds. Fails when cargo fails or warns: when a dependency has no
/// version, a file that the manifest names is missing, or the manifest lacks a description, a
/// license or a place of its documentation.
pub(crate) fn run() -> anyhow::Result<()> {
    let selected = crate_rows::crates().flat_map(|name| ["--package", name]);
    let output = workspace::cargo(&["package", "--locked", "--no-verify", "--allow-dirty"])
        .arg("--exclude-lockfile")
        .args(selected)
        .output()
        .context("cargo could not be started")?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("cargo package ended with {}:\n{messages}", output.status);
    }
    ensure!(
        !messages.contains("warning: "),
        "cargo package has warnings:\n{messages}"
    );
    println!("{} crates can be packaged", crate_rows::crates().count());
    Ok(())
}
