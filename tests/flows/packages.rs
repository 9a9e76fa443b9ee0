//! The files of `deploy`: the example configurations, and the npm package, the Debian package and
//! the container image.

mod container;
mod debian;
mod npm;

use std::{
    fs,
    path::{Path, PathBuf},
};

use portcullis_scenarios::{Portcullis, Scratch};
use serde_json::Value;
use xtask::workspace;

fn deploy(file: &str) -> PathBuf {
    workspace::root().join("deploy").join(file)
}

/// J9: every configuration in `deploy` passes `check`, without a warning.
#[tokio::test]
async fn example_configurations_are_valid() {
    let chart = Scratch::file("chart.toml", &configuration_of_chart());
    for file in [
        deploy("portcullis.toml"),
        deploy("compose/portcullis.toml"),
        chart.path().to_owned(),
    ] {
        let checked =
            Portcullis::run(&["check", "--json", "--config", file.to_str().unwrap()]).await;
        assert_eq!(checked.code, Some(0), "{file:?}: {checked:?}");
        let report: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(report["warnings"], Value::Array(Vec::new()), "{file:?}");
    }
}

/// Returns the block `config: |` of the chart's values.
fn configuration_of_chart() -> String {
    let values = fs::read_to_string(deploy("helm/portcullis/values.yaml")).unwrap();
    let lines = values
        .lines()
        .skip_while(|line| *line != "config: |")
        .skip(1);
    lines
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// J9: every command in the documentation and in `deploy` that runs or installs another party's
/// package names its version.
#[test]
fn installed_packages_have_a_version() {
    let root = workspace::root();
    let mut files = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["docs", "deploy"] {
        files.extend(files_below(&root.join(folder)));
    }
    let mut found = 0;
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        // Its strings are what other pages must not contain.
        let is_list_of_forbidden = file.ends_with("docs/contribute/installing.toml");
        for line in text
            .lines()
            .filter(|line| !(is_list_of_forbidden && line.trim_start().starts_with('"')))
        {
            // `npx mcp-remote` is what others have in their configurations.
            let run = line
                .split("npx ")
                .skip(1)
                .filter_map(|rest| rest.split([' ', '`']).next());
            let run = run.filter(|package| !package.is_empty() && *package != "mcp-remote");
            let installed = line
                .split(" install ")
                .skip(1)
                .filter(|_| line.contains("pip install "));
            for command in run.chain(installed) {
                found += 1;
                let is_pinned = command.contains('@')
                    || command.contains("==")
                    || command.contains("--require-hashes");
                assert!(is_pinned, "{}: {line}", file.display());
            }
        }
    }
    assert!(found > 5, "{found}");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
