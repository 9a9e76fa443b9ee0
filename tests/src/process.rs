//! [`Process`]: a child process in a process group of its own.

use std::{
    net::{SocketAddr, TcpListener},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, kill_process_group, test_kill_process_group};
use tokio::time::{sleep, timeout};

pub use rustix::process::Signal;

/// The interval at which a process is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The timeout for the end of a process group after a signal: longer than servers wait for requests
/// in progress.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// A running program. Its whole process group is killed when this is dropped.
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts a program in a process group of its own. The name is used in errors.
    ///
    /// # Errors
    /// Fails when the program cannot be started.
    pub fn start(name: impl Into<String>, command: &mut Command) -> anyhow::Result<Self> {
        let name = name.into();
        let child = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("{name} could not be started"))?;
        Ok(Self { name, child })
    }

    /// Returns the name given at the start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the process identifier.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes the standard input, if it is piped and was not taken yet.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Takes the standard output, if it is piped and was not taken yet.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Takes the standard error, if it is piped and was not taken yet.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns the exit status if the program has ended.
    ///
    /// # Errors
    /// Fails when the operating system does.
    pub fn try_wait(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the end of the program, without a timeout: the caller sets one if the program may
    /// not end.
    ///
    /// # Errors
    /// Fails when the operating system does.
    pub async fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Sends a signal to the process group. It is not an error if the group has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group(), signal);
    }

    /// Sends SIGTERM to the process group and waits until all of its processes have ended.
    ///
    /// # Errors
    /// Fails when the program had ended before, and when a process runs for another 60 s.
    pub async fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.end(Signal::TERM).await
    }

    /// Sends SIGKILL to the process group and waits until all of its processes have ended.
    ///
    /// # Errors
    /// Fails when the program had ended before, and when a process runs for another 60 s.
    pub async fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        self.end(Signal::KILL).await
    }

    /// Sends a signal to the group, and waits until all its processes have ended.
    async fn end(&mut self, signal: Signal) -> anyhow::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} had already ended with {status}", self.name);
        }
        self.signal(signal);
        let ended = async {
            loop {
                // The group's number is not reused while one of its processes exists.
                if let Some(status) = self.child.try_wait()?
                    && test_kill_process_group(self.group()).is_err()
                {
                    return Ok(status);
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(END_TIMEOUT, ended)
            .await
            .with_context(|| format!("{} did not end in time", self.name))?
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After a successful wait, the number may belong to another process.
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Returns a loopback address whose port is free at this moment. Another socket may be given the
/// port before a program binds it: [`ReservedPort`](crate::ReservedPort) prevents that.
///
/// # Errors
/// Fails when there is no free port.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")
        .context("there is no free port")?
        .local_addr()?)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{BufRead as _, BufReader},
        process::Stdio,
    };

    use crate::TIMEOUT;

    use super::*;

    #[tokio::test]
    async fn the_end_is_waited_for() {
        let mut process = Process::start("sh", Command::new("sh").args(["-c", "exit 3"])).unwrap();
        assert_eq!(process.wait().await.unwrap().code(), Some(3));
        let error = process.stop().await.unwrap_err().to_string();
        assert!(error.contains("sh had already ended"), "{error}");
    }

    #[tokio::test]
    async fn descendants_are_killed_on_drop() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(Stdio::piped());
        let mut process = Process::start("sh", &mut command).unwrap();
        let mut line = String::new();
        BufReader::new(process.take_stdout().unwrap())
            .read_line(&mut line)
            .unwrap();
        // No process, or a zombie.
        let is_gone = || {
            fs::read_to_string(format!("/proc/{}/stat", line.trim()))
                .map_or(true, |stat| stat.contains(") Z "))
        };
        assert!(!is_gone(), "it runs");
        drop(process);
        let ended = async {
            while !is_gone() {
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(TIMEOUT, ended).await.unwrap();
    }
}
