//! Checks of the YAML files and of the Helm chart: its values against their schema, and its
//! objects, as Helm renders them, against the schemas of Kubernetes and of the Prometheus operator.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, ensure};

use super::tools;
use crate::{report::Step, shell};

/// The version of Kubernetes with whose schemas objects are compared.
const KUBERNETES: &str = "1.33";
/// Values that create every object and field.
const ALL: &str = include_str!("all-values.yaml");

/// Reads all YAML files that are not templates, and compares the values of the chart, with valid
/// and invalid changes, with their schema. Fails when a file or value is invalid.
pub(super) fn values(deploy: &Path, folder: &Path) -> anyhow::Result<Step> {
    let python = match tools::python(folder) {
        Ok(python) => python,
        Err(error) => return Ok(Step::NotRun(format!("{error:#}"))),
    };
    let result = shell::output(
        Command::new(python)
            .arg("-c")
            .arg(include_str!("values.py"))
            .arg(deploy),
    )?;
    Ok(Step::Checked(result.trim().to_owned()))
}

/// Renders the chart with its own values and with all others. Fails when Helm or a schema rejects
/// the chart.
pub(super) fn rendered(deploy: &Path, folder: &Path) -> anyhow::Result<Step> {
    let (python, helm) =
        match tools::python(folder).and_then(|python| Ok((python, tools::helm(folder)?))) {
            Ok(programs) => programs,
            Err(error) => return Ok(Step::NotRun(format!("{error:#}"))),
        };
    let chart = deploy.join("helm/portcullis");
    let all = folder.join("all-values.yaml");
    fs::write(&all, ALL)?;
    shell::output(Command::new(&helm).args(["lint", "--strict"]).arg(&chart))?;
    let (mut objects, mut monitors) = (0, 0);
    for values in [chart.join("values.yaml"), all] {
        let rendered = shell::output(
            Command::new(&helm)
                .args(["template", "test"])
                .arg(&chart)
                .arg("--values")
                .arg(values),
        )?;
        let file = folder.join("rendered.yaml");
        fs::write(&file, &rendered)?;
        let validate = python.with_file_name("kubernetes-validate");
        shell::output(
            Command::new(validate)
                .args(["--strict", "--kubernetes-version", KUBERNETES])
                .arg(&file),
        )?;
        let script = include_str!("service_monitor.py");
        let found = shell::output(Command::new(&python).arg("-c").arg(script).arg(&file))?;
        monitors += found
            .trim()
            .parse::<usize>()
            .context("the script printed no number")?;
        objects += rendered
            .lines()
            .filter(|line| line.starts_with("kind: "))
            .count();
    }
    ensure!(
        objects > 0 && monitors > 0,
        "the chart has {objects} objects, of which {monitors} are ServiceMonitors"
    );
    Ok(Step::Checked(format!("{objects} objects")))
}
