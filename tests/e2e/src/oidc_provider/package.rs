//! [`Package`]: `oidc-provider` and a Node.js version that it supports.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use portcullis_scenarios::npm_install;
use xtask::workspace;

/// The folder with the pinned versions of `oidc-provider` and Node.js.
const PACKAGE: &str = "tests/idp/oidc-provider";
const SCRIPT: &str = "tests/idp/oidc-provider/server.mjs";

/// An installed `oidc-provider`.
pub(crate) struct Package(PathBuf);

impl Package {
    /// Installs it into the target folder, unless that was done before.
    pub(crate) async fn install(target: &Path) -> anyhow::Result<Self> {
        let folder = target.join("oidc-provider");
        npm_install(&folder, &workspace::root().join(PACKAGE)).await?;
        Ok(Self(folder))
    }

    /// Returns the command that starts the script of `tests/idp`.
    pub(super) fn command(&self) -> Command {
        let mut node = Command::new(self.0.join("node_modules/node/bin/node"));
        node.arg(workspace::root().join(SCRIPT))
            .current_dir(&self.0);
        node
    }
}
