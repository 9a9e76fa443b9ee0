//! The servers behind the gateway.
//!
//! The conformance servers of the SDKs and of the suite are in no registry, so two of these are
//! this project's own, on the published SDKs; `--also` takes any other.

use std::{fs, path::Path, process::Command};

use anyhow::Context as _;

use portcullis_scenarios::{free_address, npm_install};
use xtask::{built, workspace};

use crate::program::Program;

/// The revisions that scenarios exist for.
const REVISIONS: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// Those with sessions.
const LEGACY: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25"];

/// A server to run scenarios against.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(super) name: String,
    /// The revisions that it serves.
    pub(super) revisions: &'static [&'static str],
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// It listens there.
    Url(String),
    /// A program that listens on the port in the variable `PORT`.
    Program(Vec<String>),
    Missing(String),
}

/// Whether a server can be used here.
pub(super) enum Started {
    Listening(Listening),
    /// Why not.
    Missing(String),
}

/// A server that listens. One that was started here ends when this is dropped.
pub(super) struct Listening {
    pub(super) url: String,
    program: Option<Program>,
}

/// Returns the servers that are built here or installed from npm. One whose packages cannot be
/// installed is missing.
pub(super) async fn all(target: &Path) -> anyhow::Result<Vec<Upstream>> {
    let rmcp = built::build(&["--workspace", "--bin=everything_server", "--locked"])?;
    let rmcp = rmcp
        .program("everything_server")?
        .to_string_lossy()
        .into_owned();
    let mut upstreams = vec![Upstream::new(
        "rmcp",
        REVISIONS,
        Source::Program(vec![rmcp]),
    )];
    let packages = install(target).await;
    let script = |path: &str| target.join(path).to_string_lossy().into_owned();
    let everything = script("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    for (name, revisions, arguments) in [
        (
            "typescript",
            REVISIONS,
            vec!["node".to_owned(), script("server.mjs")],
        ),
        (
            "server-everything",
            LEGACY,
            vec!["node".to_owned(), everything, "streamableHttp".to_owned()],
        ),
    ] {
        let source = match &packages {
            Ok(()) => Source::Program(arguments),
            Err(why) => Source::Missing(format!("{why:#}")),
        };
        upstreams.push(Upstream::new(name, revisions, source));
    }
    Ok(upstreams)
}

/// Installs the packages and copies the script next to them, where Node.js finds them.
async fn install(target: &Path) -> anyhow::Result<()> {
    let source = workspace::root().join("tests/servers/typescript");
    npm_install(target, &source).await?;
    fs::copy(source.join("server.mjs"), target.join("server.mjs"))?;
    Ok(())
}

impl Upstream {
    fn new(name: &str, revisions: &'static [&'static str], source: Source) -> Self {
        Self {
            name: name.to_owned(),
            revisions,
            source,
        }
    }

    /// Reads `NAME=URL`.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let (name, url) = text.split_once('=').context("expected NAME=URL")?;
        Ok(Self::new(name, REVISIONS, Source::Url(url.to_owned())))
    }

    /// Starts it, and waits until it listens.
    pub(super) async fn start(&self, logs: &Path) -> anyhow::Result<Started> {
        let arguments = match &self.source {
            Source::Missing(why) => return Ok(Started::Missing(why.clone())),
            Source::Url(url) => {
                return Ok(Started::Listening(Listening {
                    url: url.clone(),
                    program: None,
                }));
            }
            Source::Program(arguments) => arguments,
        };
        let address = free_address()?;
        let (program, arguments) = arguments.split_first().context("no program")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("PORT", address.port().to_string());
        let mut program = Program::start(&self.name, &mut command, logs)?;
        program.wait_for_listener(address).await?;
        Ok(Started::Listening(Listening {
            url: format!("http://{address}/mcp"),
            program: Some(program),
        }))
    }
}

impl Listening {
    /// Fails when it has ended.
    pub(super) fn expect_running(&mut self) -> anyhow::Result<()> {
        self.program
            .as_mut()
            .map_or(Ok(()), Program::expect_running)
    }
}
