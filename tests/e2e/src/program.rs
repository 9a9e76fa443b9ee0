use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ChildStdin, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use portcullis_scenarios::Process;
use tokio::{net::TcpStream, time::sleep};

/// The interval at which the output is polled.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long a program may take until it listens.
const LISTEN_LIMIT: Duration = Duration::from_secs(30);

/// The number of lines shown of a program that ended.
const LAST_LINES: usize = 8;

/// A process whose output goes to a file. Its whole process group is killed when this is dropped.
pub(crate) struct Program {
    process: Process,
    output: PathBuf,
}

impl Program {
    /// Starts the program. Its output goes to `<folder>/<name>.log`.
    pub(crate) fn start(
        name: impl Into<String>,
        command: &mut Command,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        command.stdin(Stdio::null());
        Self::start_with_input(name, command, folder)
    }

    /// As [`start`](Self::start), with the standard input of the command.
    pub(crate) fn start_with_input(
        name: impl Into<String>,
        command: &mut Command,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let name = name.into();
        let output = folder.join(format!("{name}.log"));
        let file = File::create(&output)
            .with_context(|| format!("{} cannot be created", output.display()))?;
        command.stdout(file.try_clone()?).stderr(file);
        Ok(Self {
            process: Process::start(name, command)?,
            output,
        })
    }

    /// Waits for a line for which `find` returns a value. Fails when the program ends before.
    pub(crate) async fn find_line<T>(
        &mut self,
        find: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        loop {
            // The status is read before the output, so that the last line is not missed.
            let ended = self.process.try_wait()?;
            let text = self.output();
            let whole_lines = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
            if let Some(found) = whole_lines.lines().find_map(&find) {
                return Ok(found);
            }
            if let Some(status) = ended {
                bail!(
                    "{} ended with {status}:\n{}",
                    self.process.name(),
                    text.trim_end()
                );
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until the program listens at an address. Fails when the program ends before, another
    /// program listens there, or it does not listen in time.
    pub(crate) async fn wait_for_listener(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let started = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            self.expect_running()?;
            ensure!(
                started.elapsed() < LISTEN_LIMIT,
                "{} does not listen on {address}",
                self.process.name()
            );
            sleep(POLL_INTERVAL).await;
        }
        ensure!(self.is_running()?, "another program listens on {address}");
        Ok(())
    }

    /// As [`find_line`](Self::find_line), but also waits when the program has ended.
    pub(crate) async fn find_any_line<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        loop {
            if let Some(found) = self.output().lines().find_map(&find) {
                return found;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Takes the standard input, if it is piped and was not taken yet.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.process.take_stdin()
    }

    /// Fails when the program has ended.
    pub(crate) fn expect_running(&mut self) -> anyhow::Result<()> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => {
                bail!(
                    "{} ended with {status}; its last lines are:\n{}",
                    self.process.name(),
                    self.last_lines()
                )
            }
        }
    }

    /// Returns the last lines of the output so far.
    pub(crate) fn last_lines(&self) -> String {
        let output = self.output();
        let lines: Vec<_> = output.trim_end().lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// Returns the output so far.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// Returns whether the program has not ended.
    pub(crate) fn is_running(&mut self) -> anyhow::Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// Waits for the end.
    pub(crate) async fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Sends SIGTERM and waits until all processes of the group have ended.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.process.stop().await
    }

    /// Sends SIGKILL and waits until all processes of the group have ended.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        self.process.kill().await
    }
}

#[cfg(test)]
mod tests {
    use portcullis_scenarios::{ReservedPort, Scratch};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_listener_is_that_of_the_program() {
        let reserved = ReservedPort::new();
        let folder = Scratch::folder("listener");
        let mut ended = Program::start("ended", &mut Command::new("false"), folder.path()).unwrap();
        assert!(
            ended
                .wait_for_listener(reserved.address())
                .await
                .unwrap_err()
                .to_string()
                .contains("exit status: 1")
        );
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        ended.wait().await.unwrap();
        let error = ended
            .wait_for_listener(other.local_addr().unwrap())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("another program listens"), "{error}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn lines_are_found_and_an_early_end_is_reported() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo one >&2; echo two; exit 3"]);
        let folder = Scratch::folder("find-line");
        let mut program = Program::start("find-line", &mut shell, folder.path()).unwrap();
        assert_eq!(
            program
                .find_line(|line| line.strip_prefix("tw").map(str::to_owned))
                .await
                .unwrap(),
            "o"
        );
        let message = program
            .find_line(|_| None::<()>)
            .await
            .unwrap_err()
            .to_string();
        assert!(message.contains("exit status: 3"), "{message}");
        assert!(message.contains("one"), "{message}");
    }
}
