//! The files of `deploy`: the example configurations, and the npm package, the Debian package and the container image.

mod container;
mod debian;
mod npm;

use std::{fs, path::PathBuf};

use portcullis_scenarios::{Portcullis, Scratch};
use serde_json::Value;
use xtask::workspace;

/// Returns the path of a file of `deploy`.
fn deploy(file: &str) -> PathBuf {
    workspace::root().join("deploy").join(file)
}

/// J9: every configuration in `deploy` passes `check`, without a warning.
#[tokio::test]
async fn example_configurations_are_valid() {
    let chart = Scratch::file("chart.toml", &configuration_of_chart());
    for file in [deploy("portcullis.toml"), deploy("compose/portcullis.toml"), chart.path().to_owned()] {
        let checked = Portcullis::run(&["check", "--json", "--config", file.to_str().unwrap()]).await;
        assert_eq!(checked.code, Some(0), "{file:?}: {checked:?}");
        let report: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(report["warnings"], Value::Array(Vec::new()), "{file:?}");
    }
}

/// Returns the block `config: |` of the chart's values.
fn configuration_of_chart() -> String {
    let values = fs::read_to_string(deploy("helm/portcullis/values.yaml")).unwrap();
    let lines = values.lines().skip_while(|line| *line != "config: |").skip(1);
    lines
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .fold(String::new(), |text, line| text + line + "\n")
}
