//! Virtual environments with packages of PyPI.

use std::{fs, path::Path, process::Command};

use crate::shell;

/// Creates a virtual environment with the packages of a requirements file, and replaces an existing
/// one. A package without a hash in the file, or with another one, is not installed. Fails when
/// Python is missing, a package cannot be installed, or its hash differs.
pub(crate) fn install(environment: &Path, requirements: &str) -> anyhow::Result<()> {
    shell::output(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(environment),
    )?;
    let file = environment.join("requirements.txt");
    fs::write(&file, requirements)?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
    ]);
    shell::output(pip.arg(file)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package without a hash is not installed. pip rejects it before it connects to an index.
    #[test]
    fn packages_without_a_hash_are_not_installed() {
        let folder = tempfile::tempdir().unwrap();
        let error = install(&folder.path().join("python"), "PyYAML==6.0.3\n").unwrap_err();
        assert!(error.to_string().contains("require-hashes"), "{error}");
    }
}
