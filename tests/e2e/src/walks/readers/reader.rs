//! One reader: a process, or a server in this one.

use std::{
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;
use serde::Deserialize;

use super::in_process::InProcess;
use crate::walks::program::Program;

/// What a reader understood of one message, or what one of its handlers received.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    /// The value of `X-Request-Id`.
    pub(super) request: String,
    pub(super) method: String,
    pub(super) names: Vec<String>,
}

/// Lines of a reader in this process.
pub(super) type Lines = Arc<Mutex<Vec<Line>>>;

/// How a reader is started.
pub(super) enum Start {
    Program(Command),
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
    /// Starts it, and waits until it listens. What a program prints is kept in the folder.
    pub(super) async fn start(name: &'static str, start: Start, folder: &Path) -> anyhow::Result<Self> {
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
        Ok(Self { name, address, running })
    }

    /// Fails when it has ended.
    pub(super) fn expect_running(&mut self) -> anyhow::Result<()> {
        match &mut self.running {
            Running::Program(program) => program.expect_running(),
            Running::InProcess(_) => Ok(()),
        }
    }

    /// All that it has reported so far.
    pub(super) fn lines(&self) -> anyhow::Result<Vec<Line>> {
        match &self.running {
            Running::InProcess(server) => Ok(server.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            Running::Program(program) => {
                let written = program.output();
                let objects = written.lines().filter(|line| line.starts_with("{\"request\""));
                objects
                    .map(|line| serde_json::from_str(line).with_context(|| format!("{}: {line}", self.name)))
                    .collect()
            }
        }
    }
}
