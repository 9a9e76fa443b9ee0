//! The memory of the server at rest, measured with the example configuration and the environment of
//! the image.

use std::{
    fs::{self, File},
    io,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use rustix::fs::{Advice, fadvise};

use crate::{
    binaries::{self, Features},
    release::Release,
    report::Step,
    target::Target,
};

/// The maximum resident memory, which includes the pages of the program that were read.
const MAX_RESIDENT: u64 = 15_000_000;
/// The time in which the server must answer.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The time at rest before the measurement.
const REST: Duration = Duration::from_secs(3);

/// Starts the static server program and measures it. Fails when the server does not start, or needs
/// more memory.
pub(crate) fn at_rest(release: &Release, target: &Target) -> anyhow::Result<Step> {
    if !target.is_native() {
        return Ok(Step::NotRun(
            "this machine does not run the program".to_owned(),
        ));
    }
    let program = binaries::path(release, target, Features::Server);
    drop_cached_pages(&program)
        .with_context(|| format!("{} cannot be written to the disk", program.display()))?;
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let config = release.deploy("portcullis.toml");
    let mut server = Server::start(&program, port, &config, &release.stage("memory")?)?;
    server.wait_until_healthy(&program, port, &config)?;
    thread::sleep(REST);
    server.check_running()?;
    let status = fs::read_to_string(format!("/proc/{}/status", server.0.id()))
        .context("the kernel has no status")?;
    let resident = bytes(&status, "VmRSS").context("the kernel reports no VmRSS")?;
    let anonymous = bytes(&status, "RssAnon").context("the kernel reports no RssAnon")?;
    ensure!(
        resident <= MAX_RESIDENT,
        "the server has {resident} bytes of memory at rest, more than {MAX_RESIDENT}"
    );
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    Ok(Step::Checked(format!(
        "{:.1} MB, of which {:.1} MB anonymous",
        megabytes(resident),
        megabytes(anonymous)
    )))
}

/// Removes a program that was just linked from the page cache. The kernel maps more pages at once
/// of a file that it has written than of one that it has read, which adds up to 3 MB.
fn drop_cached_pages(program: &Path) -> io::Result<()> {
    let file = File::open(program)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// Returns a value of `/proc/PID/status` in bytes.
fn bytes(status: &str, name: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim()
        .strip_suffix(" kB")?
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// A running server, which is ended when it is dropped.
struct Server(Child);

impl Server {
    fn start(program: &Path, port: u16, config: &Path, state: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(config).env_clear();
        command
            .env("PORTCULLIS_LISTEN", format!("127.0.0.1:{port}"))
            .env("STATE_DIRECTORY", state);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self(
            command.spawn().context("the server could not be started")?,
        ))
    }

    /// Waits until the server is healthy. Fails if it ends before.
    fn wait_until_healthy(
        &mut self,
        program: &Path,
        port: u16,
        config: &Path,
    ) -> anyhow::Result<()> {
        let address = format!("127.0.0.1:{port}");
        let started = Instant::now();
        while started.elapsed() < START_TIMEOUT {
            let mut health = Command::new(program);
            health
                .arg("health")
                .arg("--config")
                .arg(config)
                .args(["--listen", &address]);
            let is_healthy = health
                .output()
                .context("the program could not be started")?
                .status
                .success();
            self.check_running()?;
            if is_healthy {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!(
            "the server is not healthy after {} s",
            START_TIMEOUT.as_secs()
        );
    }

    /// Fails if the server has ended, for example because another program has its port.
    fn check_running(&mut self) -> anyhow::Result<()> {
        match self.0.try_wait()? {
            Some(status) => bail!("the server ended with {status}"),
            None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_is_read() {
        let status = "Name:\tportcullis\nVmRSS:\t   14200 kB\nRssAnon:\t    3100 kB\n";
        assert_eq!(bytes(status, "VmRSS"), Some(14_200 * 1024));
        assert_eq!(bytes(status, "RssAnon"), Some(3_100 * 1024));
        assert_eq!(bytes(status, "Rss"), None);
    }
}
