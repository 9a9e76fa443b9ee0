//! A program under test: its process group, and what it writes.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::time::sleep;

/// How often a program is looked at while something is awaited of it.
const PERIOD: Duration = Duration::from_millis(5);

/// How many lines tell why a program ended.
const LAST_LINES: usize = 8;

/// A running program. Its whole process group is killed when this is dropped.
pub(crate) struct Program {
    name: String,
    child: Child,
    output: PathBuf,
}

impl Program {
    /// Starts the program in a process group of its own. What it writes goes to `<folder>/<name>.log`.
    pub(crate) fn start(name: impl Into<String>, command: &mut Command, folder: &Path) -> anyhow::Result<Self> {
        let name = name.into();
        let output = folder.join(format!("{name}.log"));
        let file = File::create(&output).with_context(|| format!("{} cannot be made", output.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| format!("{name} does not start"))?;
        Ok(Self { name, child, output })
    }

    /// Waits for a line in which `find` finds something.
    ///
    /// # Errors
    /// When the program ends before.
    pub(crate) async fn says<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> anyhow::Result<T> {
        loop {
            // Whether it has ended comes first, so that its last line is not missed.
            let ended = self.child.try_wait()?;
            let text = self.written();
            let whole_lines = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
            if let Some(found) = whole_lines.lines().find_map(&find) {
                return Ok(found);
            }
            if let Some(status) = ended {
                bail!("{} ended with {status}:\n{}", self.name, text.trim_end());
            }
            sleep(PERIOD).await;
        }
    }

    /// Waits for a line in which `find` finds something, whether it has ended or not.
    pub(crate) async fn wrote<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        loop {
            if let Some(found) = self.written().lines().find_map(&find) {
                return found;
            }
            sleep(PERIOD).await;
        }
    }

    /// Fails when it has ended.
    pub(crate) fn expect_running(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}; its last lines are:\n{}", self.name, self.last_lines()),
        }
    }

    /// The end of what it has written so far.
    pub(crate) fn last_lines(&self) -> String {
        let written = self.written();
        let lines: Vec<_> = written.trim_end().lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// What it has written so far.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// Whether it runs still.
    pub(crate) fn is_running(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            sleep(PERIOD).await;
        }
    }

    /// Sends SIGTERM to its group and waits until nothing of it is left.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.end(Signal::TERM).await
    }

    /// Sends SIGKILL to its group and waits until nothing of it is left.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        self.end(Signal::KILL).await
    }

    async fn end(&mut self, signal: Signal) -> anyhow::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} had ended before, with {status}", self.name);
        }
        self.signal(signal);
        loop {
            // The number of a group is nobody else's while one of its processes lives.
            if let Some(status) = self.child.try_wait()?
                && test_kill_process_group(self.group()).is_err()
            {
                return Ok(status);
            }
            sleep(PERIOD).await;
        }
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _ = kill_process_group(self.group(), signal);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Once it was waited for, its number may be another process's.
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    fn shell(name: &'static str, script: &str) -> Program {
        Program::start(name, Command::new("sh").args(["-c", script]), &env::temp_dir()).unwrap()
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn lines_are_waited_for_and_an_end_is_told() {
        runtime().block_on(async {
            let mut program = shell("e2e-says", "echo one >&2; echo two; exit 3");
            assert_eq!(program.says(|line| line.strip_prefix("tw").map(str::to_owned)).await.unwrap(), "o");
            let message = program.says(|_| None::<()>).await.unwrap_err().to_string();
            assert!(message.contains("exit status: 3") && message.contains("one"), "{message}");
        });
    }

    #[test]
    fn a_dropped_program_leaves_no_descendant() {
        runtime().block_on(async {
            let mut program = shell("e2e-dropped", "sleep 600 & echo $!; wait");
            let descendant: i32 = program.says(|line| line.parse().ok()).await.unwrap();
            drop(program);
            let state = || fs::read_to_string(format!("/proc/{descendant}/stat")).unwrap_or_default();
            while !state().is_empty() && !state().contains(") Z ") {
                sleep(PERIOD).await;
            }
        });
    }
}
