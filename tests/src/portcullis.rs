use std::{
    net::SocketAddr,
    process::{Output, Stdio},
};

use serde_json::Value;
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    time::timeout,
};

use crate::{Answer, PATIENCE, Scratch, binary, log::Log};

/// The real program, running. It is killed when dropped, and a scenario fails when it ever panicked.
pub struct Portcullis {
    child: Child,
    address: SocketAddr,
    log: Log,
    output: Log,
    _configuration: Option<Scratch>,
}

/// What a program that ended by itself left behind.
#[derive(Debug)]
pub struct Finished {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Portcullis {
    /// Starts `portcullis serve` with a configuration and waits until it listens.
    ///
    /// # Panics
    /// When it does not listen in time.
    pub async fn serve(configuration: &str) -> Self {
        Self::serve_logging(configuration, "json", None).await
    }

    /// The same, with its log in this form, and a limit of open files where there are arguments of `ulimit`.
    ///
    /// # Panics
    /// When it does not listen in time.
    pub async fn serve_logging(configuration: &str, format: &str, files: Option<&str>) -> Self {
        let file = Scratch::file("portcullis.toml", configuration);
        let mut started = Self::start_logging(&["serve", "--config", file.as_str()], format, files).await;
        started._configuration = Some(file);
        started
    }

    /// Starts the program with these arguments and waits until it listens.
    ///
    /// # Panics
    /// When it does not listen in time.
    pub async fn start(arguments: &[&str]) -> Self {
        Self::start_logging(arguments, "json", None).await
    }

    async fn start_logging(arguments: &[&str], format: &str, files: Option<&str>) -> Self {
        let mut child = command(arguments, files)
            .args(["--log-format", format])
            .env("PORTCULLIS_LOG", "trace")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = Log::read(child.stderr.take().expect("standard error is piped"));
        let output = Log::read(child.stdout.take().expect("standard output is piped"));
        let address = timeout(PATIENCE, log.find(listening_at)).await.ok().flatten();
        let address = address.unwrap_or_else(|| panic!("it does not listen:\n{}", log.text()));
        Self { child, address, log, output, _configuration: None }
    }

    /// Runs the program until it ends by itself.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn run(arguments: &[&str]) -> Finished {
        Self::run_with(arguments, &[]).await
    }

    /// Runs the program until it ends by itself, with more environment variables.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn run_with(arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
        let output = command(arguments, None).envs(environment.iter().copied()).output();
        Finished::from(timeout(PATIENCE, output).await.expect("it ends by itself").expect("it starts"))
    }

    /// Runs the program until it ends by itself, with this on its standard input.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn run_fed(arguments: &[&str], input: &str) -> Finished {
        let mut command = command(arguments, None);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        stdin.write_all(input.as_bytes()).await.expect("it reads");
        drop(stdin);
        Finished::from(timeout(PATIENCE, child.wait_with_output()).await.expect("it ends by itself").expect("it ran"))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process's number.
    ///
    /// # Panics
    /// When it has ended.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// The access line of the request that was answered so. It waits for the line to be written.
    ///
    /// # Panics
    /// When there is none in time, or the answer has no request id.
    pub async fn access_line(&self, answer: &Answer) -> Value {
        let id = answer.header("x-request-id").unwrap_or_else(|| panic!("no request id: {answer:?}"));
        self.logged(id, |line| line["message"] == "request" && line["request.id"] == id).await
    }

    /// Asserts the reason code in the access line of an answer, and that the answer itself does not tell it.
    ///
    /// # Panics
    /// When it is another one.
    pub async fn assert_denied(&self, answer: &Answer, code: &str) {
        let line = self.access_line(answer).await;
        assert_eq!(line["deny.code"], code, "{answer:?}\n{line}");
        assert_eq!(line["http.status"], answer.status, "{line}");
        assert!(!format!("{answer:?}").contains(code), "the reason is told to the client: {answer:?}");
    }

    /// As [`assert_denied`](Self::assert_denied), for answers in any number.
    ///
    /// # Panics
    /// When one of them has another reason.
    pub async fn assert_all_denied(&self, denied: &[(Answer, &str)]) {
        assert!(!denied.is_empty(), "no case at all");
        for (answer, code) in denied {
            self.assert_denied(answer, code).await;
        }
    }

    /// The first log line that has this text and is wanted. It waits for the line to be written.
    ///
    /// # Panics
    /// When there is none in time.
    pub async fn logged(&self, text: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let line = timeout(PATIENCE, self.log.wait(text, wanted)).await.ok().flatten();
        line.unwrap_or_else(|| panic!("no such line with {text:?}:\n{}", self.log.text()))
    }

    /// The first log line, in any form, that has all these texts. It waits for the line to be written.
    ///
    /// # Panics
    /// When there is none in time.
    pub async fn logged_line(&self, texts: &[&str]) -> String {
        let all = |line: &str| texts.iter().all(|text| line.contains(text)).then(|| line.to_owned());
        let line = timeout(PATIENCE, self.log.find(all)).await.ok().flatten();
        line.unwrap_or_else(|| panic!("no line with {texts:?}:\n{}", self.log.text()))
    }

    /// Everything that it has logged so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Asks it to stop, waits for its end, and gives its exit code and all that it wrote.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn stop(self) -> Finished {
        self.signal("TERM").await;
        self.ended().await
    }

    /// Waits for its end, and gives its exit code and all that it wrote.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn ended(mut self) -> Finished {
        let status = timeout(PATIENCE, self.child.wait()).await.expect("it ends").expect("it can be waited for");
        let ended = async {
            self.log.ended().await;
            self.output.ended().await;
        };
        timeout(PATIENCE, ended).await.expect("nobody else holds its output");
        Finished { code: status.code(), stdout: self.output.text(), stderr: self.log.text() }
    }

    /// Sends it a signal by name.
    ///
    /// # Panics
    /// When `kill` cannot be run.
    pub async fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().await;
        assert!(sent.expect("kill runs").success());
    }
}

impl Drop for Portcullis {
    fn drop(&mut self) {
        let log = self.log.text();
        if log.contains("panicked at") && !std::thread::panicking() {
            panic!("the program panicked:\n{log}");
        }
    }
}

/// The address in the line that says that it listens, in either form of the log.
fn listening_at(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening").filter(|_| line.contains("listen.address"))?;
    let (_, address) = rest.split_once("listen.address")?;
    let address = address.trim_start_matches(['"', ':', '=']);
    address.split(['"', ' ']).next()?.parse().ok()
}

/// The program with these arguments and limit of open files, and with nothing of it configured by this process's
/// environment.
fn command(arguments: &[&str], files: Option<&str>) -> Command {
    let mut command = match files {
        None => Command::new(binary()),
        Some(limit) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]).arg(binary());
            shell
        }
    };
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("PORTCULLIS_")) {
            command.env_remove(name);
        }
    }
    command
}
