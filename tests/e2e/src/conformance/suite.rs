use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::{block_on, npm_install};
use xtask::workspace;

/// The folder with the pinned versions of the suite and Node.js. Other versions of the suite have
/// other scenarios.
const PACKAGE: &str = "tests/e2e/src/conformance/suite";

/// An installed suite.
pub(crate) struct Suite {
    folder: PathBuf,
}

impl Suite {
    /// Installs the suite, unless that was done before.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let folder = workspace::metadata()?.target_directory.join("conformance");
        block_on(npm_install(&folder, &workspace::root().join(PACKAGE)))?;
        Ok(Self { folder })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = self.command(arguments);
        let program = command.get_program().to_owned();
        command
            .output()
            .with_context(|| format!("{} could not be started", program.display()))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let program = self
            .folder
            .join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        let mut command = Command::new(self.folder.join("node_modules/node/bin/node"));
        command
            .arg(program)
            .args(arguments)
            .current_dir(&self.folder);
        command
    }

    /// Returns the scenarios under one heading of a revision's requirements. Fails when there is
    /// none.
    pub(crate) fn required(&self, revision: &str, heading: &str) -> anyhow::Result<Vec<String>> {
        let listed = self.run(&["list", "--requirements", revision])?;
        let text = String::from_utf8(listed.stdout)?;
        let below = text
            .lines()
            .skip_while(|line| !line.starts_with(heading))
            .skip(1);
        let lines = below.map_while(|line| line.strip_prefix("  - "));
        let names: Vec<_> = lines
            .map(|line| line.split(' ').next().unwrap_or(line).to_owned())
            .collect();
        ensure!(
            !names.is_empty(),
            "the suite lists no scenario under {heading:?} for {revision}"
        );
        Ok(names)
    }

    /// Returns an empty folder for results.
    pub(crate) fn results(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join("results").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// Returns a file of this name below a folder.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .find_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                find(&path, name)
            } else {
                path.file_name()
                    .is_some_and(|it| it == name)
                    .then_some(path)
            }
        })
}
