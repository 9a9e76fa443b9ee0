//! The Helm chart, as `helm package` would pack it.

use std::{fs, process::Command};

use anyhow::Context as _;

use crate::{release::Release, report::Step, shell};

/// Packs the chart. Fails when the chart cannot be read or packed.
pub(crate) fn build(release: &Release) -> anyhow::Result<Step> {
    let staging = release.stage("chart")?;
    shell::run(
        Command::new("cp")
            .arg("--recursive")
            .arg(release.deploy("helm/portcullis"))
            .arg(&staging),
    )?;
    let path = staging.join("portcullis/Chart.yaml");
    let chart =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    fs::write(&path, with_version(&chart, &release.version))?;
    let file = release
        .out
        .join(format!("portcullis-chart-{}.tgz", release.version));
    shell::tar_gz(&staging, "portcullis", release.time, &file)?;
    Ok(Step::Built(vec![file]))
}

/// Returns the chart with this version as its own and as that of the application.
fn with_version(chart: &str, version: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some(("version", _)) => format!("version: {version}\n"),
        Some(("appVersion", _)) => format!("appVersion: \"{version}\"\n"),
        _ => format!("{line}\n"),
    };
    chart.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_release() {
        let chart = "apiVersion: v2\nversion: 0.1.0\nappVersion: \"0.1.0\"\n";
        assert_eq!(
            with_version(chart, "2.0.0"),
            "apiVersion: v2\nversion: 2.0.0\nappVersion: \"2.0.0\"\n"
        );
    }
}
