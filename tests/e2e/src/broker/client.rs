//! [`Maker`]: the clients that sign in at a broker.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use url::Url;
use xtask::workspace;

use crate::install;

/// The maker of a client, and the version of its package.
#[derive(Clone, Copy)]
pub(super) enum Maker {
    Own,
    TypescriptOne,
    TypescriptTwo,
    Python,
}

/// A client that can be started.
pub(super) enum Installed {
    /// `login` and `connect`.
    Own,
    Sdk(Sdk),
}

/// A program with the SDK of another maker.
pub(super) struct Sdk {
    interpreter: PathBuf,
    folder: PathBuf,
    arguments: Vec<PathBuf>,
}

impl Maker {
    pub(super) const ALL: [Self; 4] = [
        Self::Own,
        Self::TypescriptOne,
        Self::TypescriptTwo,
        Self::Python,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::TypescriptOne => "v1",
            Self::TypescriptTwo => "v2",
            Self::Python => "python",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Own => "portcullis login and connect",
            Self::TypescriptOne => "@modelcontextprotocol/sdk 1.32.2",
            Self::TypescriptTwo => "@modelcontextprotocol/client 2.4.0",
            Self::Python => "Python SDK (mcp 2.3.0)",
        }
    }

    /// Installs the packages once. Fails when npm, Node.js or Python is missing or cannot install
    /// them.
    pub(super) async fn install(self, target: &Path, logs: &Path) -> anyhow::Result<Installed> {
        let sources = workspace::root().join("tests/clients");
        match self {
            Self::Own => Ok(Installed::Own),
            Self::Python => {
                let source = sources.join("python");
                let interpreter = install::python(
                    &target.join("clients/python"),
                    &source.join("requirements.txt"),
                    logs,
                )
                .await?;
                Ok(Installed::Sdk(Sdk {
                    interpreter,
                    folder: logs.to_owned(),
                    arguments: vec![source.join("sign_in.py")],
                }))
            }
            Self::TypescriptOne | Self::TypescriptTwo => {
                let source = sources.join("typescript");
                let folder = target.join("clients/typescript");
                install::npm(&folder, &source, &["sign_in.mjs", "sdk.mjs"]).await?;
                Ok(Installed::Sdk(Sdk {
                    interpreter: "node".into(),
                    folder,
                    arguments: vec!["sign_in.mjs".into(), self.name().into()],
                }))
            }
        }
    }
}

impl Sdk {
    /// Returns the command that signs in at a resource.
    pub(super) fn command(&self, url: &Url) -> Command {
        let mut command = Command::new(&self.interpreter);
        command
            .args(&self.arguments)
            .arg(url.as_str())
            .current_dir(&self.folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped());
        command
    }
}
