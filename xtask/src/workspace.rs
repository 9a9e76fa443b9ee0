//! The workspace's location and packages, and the `cargo` that runs this program.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail};
use serde::Deserialize;

/// Returns the workspace's root: the first of the running package's folder and its parents that has
/// a `Cargo.lock`. Without one, it is the package's folder.
pub fn root() -> PathBuf {
    // The running cargo's value comes first: with a target folder that several checkouts share,
    // this program may have been built in another one.
    let package =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let package = Path::new(&package);
    package
        .ancestors()
        .find(|folder| folder.join("Cargo.lock").exists())
        .unwrap_or(package)
        .to_owned()
}

/// Returns the `cargo` that runs this program, in the workspace's root.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // Cargo set these for this program. Some build scripts watch them and would run again each time
    // they differ.
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_this_package(&name.to_string_lossy()))
    {
        command.env_remove(name);
    }
    command
}

/// Returns whether cargo sets this variable for the package that it runs.
fn is_of_this_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// Returns the files with this extension in these files and folders of the workspace, and below.
///
/// # Errors
/// Fails when a folder cannot be read.
pub fn files(places: &[&str], extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut places: Vec<PathBuf> = places.iter().map(|place| root().join(place)).collect();
    let mut found = Vec::new();
    while let Some(place) = places.pop() {
        if place.is_dir() {
            for entry in fs::read_dir(&place)? {
                places.push(entry?.path());
            }
        } else if place.extension().is_some_and(|other| other == extension) {
            found.push(place);
        }
    }
    found.sort();
    Ok(found)
}

/// The part of `cargo metadata` that the tools read.
#[derive(Deserialize)]
pub struct Metadata {
    /// The workspace's own packages.
    pub packages: Vec<Package>,
    /// The target folder.
    pub target_directory: PathBuf,
}

/// A package of the workspace.
#[derive(Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its direct dependencies.
    pub dependencies: Vec<Dependency>,
    /// The registries that it can be published to. `None` for all.
    pub publish: Option<Vec<String>>,
}

impl Package {
    /// Returns whether it is published.
    pub fn is_published(&self) -> bool {
        self.publish
            .as_ref()
            .is_none_or(|registries| !registries.is_empty())
    }
}

/// A direct dependency of a package.
#[derive(Deserialize)]
pub struct Dependency {
    /// The name of the package that is depended on.
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
}

/// Runs `cargo metadata`.
///
/// # Errors
/// Fails when cargo cannot be started, fails, or prints something else than expected.
pub fn metadata() -> anyhow::Result<Metadata> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .context("cargo metadata could not be started")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout)
        .context("cargo metadata printed something else than expected")
}

/// Returns the Rust files in a folder and its subfolders, except those of build results.
///
/// # Errors
/// Fails when a folder cannot be read.
pub fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?
        {
            let path = entry?.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(rust_files(Path::new("no-such-folder")).is_err());
    }
}
