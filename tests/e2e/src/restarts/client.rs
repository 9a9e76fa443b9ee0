use std::{
    io::Write as _,
    path::Path,
    process::{ChildStdin, Command, Stdio},
};

use anyhow::{Context as _, anyhow};
use xtask::workspace;

use crate::{
    install,
    program::{POLL_INTERVAL, Program},
};

/// The maker of a client, and the version of its package.
#[derive(Clone, Copy)]
pub(super) enum Maker {
    TypescriptOne,
    TypescriptTwo,
    McpRemote,
    Python,
}

impl Maker {
    pub(super) const ALL: [Self; 4] = [
        Self::TypescriptOne,
        Self::TypescriptTwo,
        Self::Python,
        Self::McpRemote,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TypescriptOne => "v1",
            Self::TypescriptTwo => "v2",
            Self::McpRemote => "mcp-remote",
            Self::Python => "python",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::TypescriptOne => "@modelcontextprotocol/sdk 1.32.2",
            Self::TypescriptTwo => "@modelcontextprotocol/client 2.4.0",
            Self::McpRemote => "mcp-remote 0.15.1",
            Self::Python => "Python SDK (mcp 2.3.0)",
        }
    }

    /// Installs the packages once, and returns the command without the URL. Fails when npm, Node.js
    /// or Python is missing or cannot install them.
    pub(super) async fn install(self, target: &Path, logs: &Path) -> anyhow::Result<Command> {
        let sources = workspace::root().join("tests/clients");
        if let Self::Python = self {
            let source = sources.join("python");
            let interpreter = install::python(
                &target.join("clients/python"),
                &source.join("requirements.txt"),
                logs,
            )
            .await?;
            let mut command = Command::new(interpreter);
            command
                .arg(source.join("client.py"))
                .env("PYTHONDONTWRITEBYTECODE", "1");
            return Ok(command);
        }
        let folder = target.join("clients/typescript");
        install::npm(&folder, &sources.join("typescript"), &["client.mjs"]).await?;
        let mut command = Command::new("node");

        // mcp-remote keeps files of its own.
        command
            .arg("client.mjs")
            .arg(self.name())
            .env("MCP_REMOTE_CONFIG_DIR", logs.join("mcp-auth"));
        command.current_dir(folder);
        Ok(command)
    }
}

/// A running client of another maker, with a session. It calls a tool when it is told to.
pub(super) struct Client {
    program: Program,
    input: ChildStdin,
    calls: usize,
}

impl Client {
    /// Starts it and waits until it has a session.
    pub(super) async fn start(
        mut command: Command,
        url: &str,
        token: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        command.arg(url).env("TOKEN", token).stdin(Stdio::piped());
        let mut program = Program::start_with_input("client", &mut command, folder)?;
        let input = program
            .take_stdin()
            .context("the standard input is piped")?;
        program
            .find_line(|line| (line == "connected").then_some(()))
            .await?;
        Ok(Self {
            program,
            input,
            calls: 0,
        })
    }

    /// Has it call the tool, and returns the session that the upstream saw.
    pub(super) async fn call(&mut self) -> anyhow::Result<String> {
        self.input.write_all(b"\n")?;
        let number = self.calls;
        self.calls += 1;

        // Each call has one line of output.
        let answer = loop {
            self.program.expect_running()?;
            let output = self.program.output();
            let whole_lines = output.rsplit_once('\n').map_or("", |(lines, _)| lines);
            let mut answers = whole_lines
                .lines()
                .filter(|line| line.starts_with("answer ") || line.starts_with("error "));
            if let Some(answer) = answers.nth(number) {
                break answer.to_owned();
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        answer
            .strip_prefix("answer ")
            .map(str::to_owned)
            .ok_or_else(|| anyhow!("the client reports: {answer}"))
    }
}
