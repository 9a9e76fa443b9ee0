//! [`MeasuredProcess`]: a process with its address, CPU time and memory.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use portcullis_scenarios::{Process, Signal};
use tokio::{net::TcpStream, time::sleep};

/// The maximum time until a process listens.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A measured process. It is killed when dropped.
pub(super) struct MeasuredProcess {
    process: Process,
    pub(super) address: SocketAddr,
}

/// The memory of a process in bytes.
#[derive(Clone, Copy, serde::Serialize)]
pub(super) struct Memory {
    pub(super) resident: u64,
    /// The part that is not mapped from files.
    pub(super) anonymous: u64,
}

impl MeasuredProcess {
    /// Starts a program that prints its address as its first line.
    pub(super) fn announcing(command: &mut Command) -> anyhow::Result<Self> {
        let mut process = spawn(command.stdout(Stdio::piped()))?;
        let mut line = String::new();
        BufReader::new(process.take_stdout().context("no standard output")?)
            .read_line(&mut line)?;
        let address = line.trim().parse();
        let address = address
            .with_context(|| format!("{} printed {line:?}, not an address", process.name()))?;
        Ok(Self { process, address })
    }

    /// Starts a program that will listen on a known address.
    pub(super) fn start(command: &mut Command, address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            process: spawn(command)?,
            address,
        })
    }

    /// Waits until the process accepts connections.
    pub(super) async fn listening(&mut self) -> anyhow::Result<TcpStream> {
        let started = Instant::now();
        loop {
            if let Ok(stream) = TcpStream::connect(self.address).await {
                return Ok(stream);
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("{} ended with {status}", self.process.name());
            }
            if started.elapsed() > START_TIMEOUT {
                bail!(
                    "{} does not listen on {}",
                    self.process.name(),
                    self.address
                );
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Returns the CPU time so far, user and system, of the process, its threads and its children.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let mut total = threads_cpu(self.process.id())?;
        for child in children(self.process.id())? {
            total += threads_cpu(child)?;
        }
        Ok(total)
    }

    /// Returns the memory of the process without its children.
    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let field = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .with_context(|| format!("no {name}"))?;
            Ok::<_, anyhow::Error>(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
        };
        Ok(Memory {
            resident: field("VmRSS:")?,
            anonymous: field("RssAnon:")?,
        })
    }
}

/// Starts a program without standard input.
fn spawn(command: &mut Command) -> anyhow::Result<Process> {
    let name = Path::new(command.get_program()).display().to_string();
    Process::start(name, command.stdin(Stdio::null()))
}

/// Returns the CPU time from `schedstat`, which counts in nanoseconds. `/proc/PID/stat` counts in
/// clock ticks.
fn threads_cpu(process: u32) -> anyhow::Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let account = fs::read_to_string(thread?.path().join("schedstat"))?;
        total += Duration::from_nanos(
            account
                .split(' ')
                .next()
                .context("an empty schedstat")?
                .parse()?,
        );
    }
    Ok(total)
}

/// Returns the child processes of a process's main thread.
fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    Ok(list
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?)
}
