//! [`Calls`]: a running client that calls tools.

use std::{io::Write as _, path::Path, process::ChildStdin, time::Duration};

use anyhow::{Context as _, anyhow};
use tokio::time::{sleep, timeout};
use url::Url;

use super::{maker::Installed, user::User};
use crate::program::{POLL_INTERVAL, Program};

/// The time limit of one call, with the start of the client and the sign-in that it needs.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// A client with its user.
pub(super) struct Calls {
    program: Program,
    input: ChildStdin,
    user: User,
    /// The number of calls so far.
    calls: usize,
}

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Called {
    /// The text of the tool, or the error that the client reports.
    pub(super) answer: Result<String, String>,
    /// How often the user signed in meanwhile.
    pub(super) sign_ins: usize,
}

impl Calls {
    /// Starts a client.
    pub(super) fn start(
        installed: &Installed,
        url: &Url,
        folder: &Path,
        name: &str,
    ) -> anyhow::Result<Self> {
        let user = User::new(&folder.join(name))?;
        let mut command = installed.command(url, &user);
        let mut program = Program::start_with_input(name, &mut command, folder)?;
        let input = program
            .take_stdin()
            .context("the standard input is piped")?;
        Ok(Self {
            program,
            input,
            user,
            calls: 0,
        })
    }

    /// Calls a tool. The user signs in as often as the client asks.
    pub(super) async fn call(&mut self, tool: &str) -> anyhow::Result<Called> {
        writeln!(self.input, "{tool}")?;
        let before = self.user.sign_ins();
        let answer = timeout(CALL_LIMIT, self.answer())
            .await
            .unwrap_or_else(|_| Err(anyhow!("no answer: {}", self.program.last_lines())))
            .with_context(|| format!("call {} of {tool}", self.calls + 1))?;
        self.calls += 1;
        Ok(Called {
            answer,
            sign_ins: self.user.sign_ins() - before,
        })
    }

    /// Waits for the line that answers the next call.
    async fn answer(&mut self) -> anyhow::Result<Result<String, String>> {
        loop {
            let is_running = self.program.expect_running();
            let output = self.program.output();
            let whole_lines = output.rsplit_once('\n').map_or("", |(lines, _)| lines);
            if let Some(answer) = whole_lines.lines().filter_map(parse).nth(self.calls) {
                return Ok(answer);
            }
            is_running?;
            self.user.act().await?;
            sleep(POLL_INTERVAL).await;
        }
    }
}

fn parse(line: &str) -> Option<Result<String, String>> {
    let answer = line.strip_prefix("answer ").map(str::to_owned).map(Ok);
    answer.or_else(|| line.strip_prefix("error ").map(str::to_owned).map(Err))
}
