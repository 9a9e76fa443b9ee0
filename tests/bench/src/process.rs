//! A measured process: its address, its CPU time, its memory.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use tokio::{net::TcpStream, time::sleep};

/// How long a process may take until it listens, and until it ends when it is asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process that is ended when dropped.
pub(super) struct Process {
    name: String,
    child: Child,
    pub(super) address: SocketAddr,
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, serde::Serialize)]
pub(super) struct Memory {
    pub(super) resident: u64,
    /// The part that is not mapped from files.
    pub(super) anonymous: u64,
}

impl Process {
    /// Starts a program that prints the address that it listens on as its first line.
    pub(super) fn announcing(command: &mut Command) -> anyhow::Result<Self> {
        let (mut child, name) = spawn(command.stdout(Stdio::piped()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no standard output")?).read_line(&mut line)?;
        match line.trim().parse() {
            Ok(address) => Ok(Self { name, child, address }),
            Err(_) => {
                let _ = child.kill();
                bail!("{name} printed {line:?}, not an address")
            }
        }
    }

    /// Starts a program that will listen on a known address.
    pub(super) fn start(command: &mut Command, address: SocketAddr) -> anyhow::Result<Self> {
        let (child, name) = spawn(command)?;
        Ok(Self { name, child, address })
    }

    /// Waits until something accepts connections there.
    pub(super) async fn listening(&mut self) -> anyhow::Result<TcpStream> {
        let started = Instant::now();
        loop {
            if let Ok(stream) = TcpStream::connect(self.address).await {
                return Ok(stream);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}", self.name);
            }
            if started.elapsed() > PATIENCE {
                bail!("{} does not listen on {}", self.name, self.address);
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// CPU time, user and system, of the process, its threads and its children so far.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let mut total = threads_cpu(self.child.id())?;
        for child in children(self.child.id())? {
            total += threads_cpu(child)?;
        }
        Ok(total)
    }

    /// The memory of the process itself.
    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
            Ok::<_, anyhow::Error>(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
        };
        Ok(Memory { resident: field("VmRSS:")?, anonymous: field("RssAnon:")? })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A signal that a program can act on first: nginx ends its workers then.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        let started = Instant::now();
        while asked.is_ok() && started.elapsed() < PATIENCE {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that was free a moment ago.
pub(super) fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?)
}

fn spawn(command: &mut Command) -> anyhow::Result<(Child, String)> {
    let name = Path::new(command.get_program()).display().to_string();
    let child = command.stdin(Stdio::null()).spawn().with_context(|| format!("{name} does not start"))?;
    Ok((child, name))
}

/// The kernel's own account in nanoseconds, finer than the ticks of `/proc/PID/stat`.
fn threads_cpu(process: u32) -> anyhow::Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let account = fs::read_to_string(thread?.path().join("schedstat"))?;
        total += Duration::from_nanos(account.split(' ').next().context("an empty schedstat")?.parse()?);
    }
    Ok(total)
}

fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    Ok(list.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}
