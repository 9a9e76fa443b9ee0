//! [`Reader`]: a reader in a process, or in this one.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::Context as _;

use super::{in_process::InProcess, line::Line};
use crate::program::Program;

/// How a reader is started.
pub(super) enum Start {
    /// As a program, which prints its address first and then its reports.
    Program(Command),
    /// In this process.
    InProcess,
}

/// A running reader.
pub(super) struct Reader {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    running: Running,
}

enum Running {
    Program(Program),
    InProcess(InProcess),
}

impl Reader {
    /// Starts the reader and waits until it listens. The output of a program is kept in the folder.
    pub(super) async fn start(
        name: &'static str,
        start: Start,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let (address, running) = match start {
            Start::InProcess => {
                let server = InProcess::listen().await?;
                (server.address, Running::InProcess(server))
            }
            Start::Program(mut command) => {
                let mut program = Program::start(format!("reader-{name}"), &mut command, folder)?;
                let address = program.find_line(|line| line.parse().ok()).await?;
                (address, Running::Program(program))
            }
        };
        Ok(Self {
            name,
            address,
            running,
        })
    }

    /// Fails if the reader has ended.
    pub(super) fn expect_running(&mut self) -> anyhow::Result<()> {
        match &mut self.running {
            Running::Program(program) => program.expect_running(),
            Running::InProcess(_) => Ok(()),
        }
    }

    /// Returns all complete reports so far.
    pub(super) fn lines(&self) -> anyhow::Result<Vec<Line>> {
        match &self.running {
            Running::InProcess(server) => Ok(server.lines.lock().clone()),
            Running::Program(program) => {
                let written = program.output();
                let whole_lines = written.rsplit_once('\n').map_or("", |(lines, _)| lines);
                let objects = whole_lines
                    .lines()
                    .filter(|line| line.starts_with("{\"request\""));
                objects
                    .map(|line| {
                        serde_json::from_str(line).with_context(|| format!("{}: {line}", self.name))
                    })
                    .collect()
            }
        }
    }
}
