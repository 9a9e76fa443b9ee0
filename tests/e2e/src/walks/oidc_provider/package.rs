//! `oidc-provider` and a Node.js that it supports, installed by npm once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use xtask::workspace;

use crate::walks::program::Program;

const PACKAGES: [&str; 2] = ["oidc-provider@9.13.3", "node@22.23.3"];
const SCRIPT: &str = "tests/idp/oidc-provider/server.mjs";

/// An installed `oidc-provider`.
pub(super) struct Package(PathBuf);

impl Package {
    /// Installs it into the target folder, where that has not been done.
    pub(super) async fn installed(target: &Path, logs: &Path) -> anyhow::Result<Self> {
        let folder = target.join("oidc-provider");
        let (wanted, installed) = (PACKAGES.join(" "), folder.join("installed"));
        if fs::read_to_string(&installed).is_ok_and(|held| held == wanted) {
            return Ok(Self(folder));
        }
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        println!("        installing {wanted} into {}", folder.display());
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", "--prefix"]);
        npm.arg(&folder).args(PACKAGES);
        let mut npm = Program::start("npm", &mut npm, logs).context("npm is needed, which comes with Node.js")?;
        let status = npm.ended().await?;
        ensure!(status.success(), "npm ended with {status}: {}", npm.last_lines());
        fs::write(installed, wanted)?;
        Ok(Self(folder))
    }

    /// The script of `tests/idp`, to be started.
    pub(super) fn command(&self) -> Command {
        let mut node = Command::new(self.0.join("node_modules/node/bin/node"));
        node.arg(workspace::root().join(SCRIPT)).current_dir(&self.0);
        node
    }
}
