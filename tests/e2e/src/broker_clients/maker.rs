//! [`Maker`]: the clients, and how they are installed and started.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::ValueEnum;
use url::Url;
use xtask::workspace;

use super::{trial::Steps, user::User};
use crate::install;

/// A client, and the version of its package.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Maker {
    Connect,
    #[value(name = "v1")]
    TypescriptOne,
    #[value(name = "v2")]
    TypescriptTwo,
    Python,
    Fastmcp,
    Rmcp,
    McpRemote,
    Inspector,
}

/// A client that can be started.
pub(super) struct Installed {
    interpreter: PathBuf,
    arguments: Vec<PathBuf>,
    folder: PathBuf,
    /// The `portcullis` program.
    program: PathBuf,
}

impl Maker {
    pub(super) const ALL: [Self; 8] = [
        Self::Connect,
        Self::TypescriptOne,
        Self::TypescriptTwo,
        Self::Python,
        Self::Fastmcp,
        Self::Rmcp,
        Self::McpRemote,
        Self::Inspector,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::TypescriptOne => "v1",
            Self::TypescriptTwo => "v2",
            Self::Python => "python",
            Self::Fastmcp => "fastmcp",
            Self::Rmcp => "rmcp",
            Self::McpRemote => "mcp-remote",
            Self::Inspector => "inspector",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Connect => "portcullis connect",
            Self::TypescriptOne => "@modelcontextprotocol/sdk 1.32.2",
            Self::TypescriptTwo => "@modelcontextprotocol/client 2.4.0",
            Self::Python => "Python SDK (mcp 2.3.0)",
            Self::Fastmcp => "FastMCP 4.1.2",
            Self::Rmcp => "rmcp 3.9.0",
            Self::McpRemote => "mcp-remote 0.15.1",
            Self::Inspector => "MCP Inspector 2.12.0 --cli",
        }
    }

    /// Returns the steps that the client takes. The run fails if it takes others.
    pub(super) fn expected(self) -> Steps {
        Steps {
            signs_in: true,
            // The first refreshes its token instead, which adds no scope. The second requests all
            // scopes of the metadata at the first sign-in.
            steps_up: !matches!(self, Self::TypescriptOne | Self::Inspector),
            refreshes: true,
            signs_in_again: true,
            // The SDKs report that the session has ended. A program on them opens another one.
            continues: !matches!(
                self,
                Self::TypescriptOne | Self::TypescriptTwo | Self::Python
            ),
        }
    }

    /// Installs the packages once. Fails when what they need is missing or cannot install them.
    pub(super) async fn install(
        self,
        program: &Path,
        target: &Path,
        logs: &Path,
    ) -> anyhow::Result<Installed> {
        let sources = workspace::root().join("tests/clients");
        let clients = target.join("clients");
        let (interpreter, arguments, folder) = match self {
            Self::Python => {
                let source = sources.join("python");
                let requirements = source.join("requirements.txt");
                let python = install::python(&clients.join("python"), &requirements, logs).await?;
                (python, vec![source.join("calls.py")], logs.to_owned())
            }
            Self::Fastmcp => {
                let requirements = workspace::root().join("tests/idp/fastmcp/requirements.txt");
                let folder = target.join("sign-in/python");
                let python = install::python(&folder, &requirements, logs).await?;
                let script = sources.join("fastmcp/calls.py");
                (python, vec![script], logs.to_owned())
            }
            Self::Rmcp => {
                let folder = clients.join("rmcp");
                let source = sources.join("rmcp");
                let program = install::cargo(&folder, &source, "rmcp_client", logs).await?;
                (program, Vec::new(), logs.to_owned())
            }
            Self::Inspector => {
                let folder = clients.join("inspector");
                install::npm(&folder, &sources.join("inspector"), &["calls.mjs"]).await?;
                ("node".into(), vec!["calls.mjs".into()], folder)
            }
            Self::Connect | Self::TypescriptOne | Self::TypescriptTwo | Self::McpRemote => {
                let folder = clients.join("typescript");
                let source = sources.join("typescript");
                install::npm(&folder, &source, &["calls.mjs", "sdk.mjs"]).await?;
                let arguments = vec!["calls.mjs".into(), self.name().into()];
                ("node".into(), arguments, folder)
            }
        };
        Ok(Installed {
            interpreter,
            arguments,
            folder,
            program: program.to_owned(),
        })
    }
}

impl Installed {
    /// Returns the command that signs in at a resource as this user. Clients keep their files in
    /// the folder of the user.
    pub(super) fn command(&self, url: &Url, user: &User) -> Command {
        let mut command = Command::new(&self.interpreter);
        let home = user.folder();
        command
            .args(&self.arguments)
            .arg(url.as_str())
            .current_dir(&self.folder)
            .env("BROWSER", user.browser())
            .env("HOME", home)
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("MCP_REMOTE_CONFIG_DIR", home.join("mcp-auth"))
            .env("MCP_STORAGE_DIR", home.join("inspector"))
            .env("MCP_INSPECTOR_SECRET_STORE", "file")
            .env("PORTCULLIS", &self.program)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped());
        command
    }
}
