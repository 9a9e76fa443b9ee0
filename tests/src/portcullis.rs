use std::{
    fs,
    net::SocketAddr,
    process::{Command, Stdio},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdout},
    time::timeout,
};

use crate::{
    TIMEOUT,
    finished::Finished,
    http_response::HttpResponse,
    log::Log,
    process::{Process, Signal},
    program::{limited_command, listen_address, portcullis_command, portcullis_program},
    reason_codes::assert_explained,
    scratch::Scratch,
};

/// A running `portcullis` program. It is killed when dropped. Dropping it panics if the program has
/// panicked.
pub struct Portcullis {
    process: Process,
    address: SocketAddr,
    log: Log,
    output: Log,
    _configuration: Option<Scratch>,
    _state: Scratch,
}

impl Portcullis {
    /// Starts `portcullis serve` with a configuration and waits until it listens.
    ///
    /// # Panics
    /// Panics if it does not listen in time.
    pub async fn serve(configuration: &str) -> Self {
        Self::serve_logging(configuration, "json", None).await
    }

    /// As [`serve`](Self::serve), with a log format and a limit of open files, which is an argument
    /// of `ulimit`.
    ///
    /// # Panics
    /// Panics if it does not listen in time.
    pub async fn serve_logging(configuration: &str, format: &str, files: Option<&str>) -> Self {
        let file = Scratch::file("portcullis.toml", configuration);
        let mut started =
            Self::start_logging(&["serve", "--config", file.as_str()], format, files).await;
        started._configuration = Some(file);
        started
    }

    /// Starts the program with these arguments and waits until it listens.
    ///
    /// # Panics
    /// Panics if it does not listen in time.
    pub async fn start(arguments: &[&str]) -> Self {
        Self::start_logging(arguments, "json", None).await
    }

    /// As [`start`](Self::start), with a limit of resources, which is an argument of `ulimit`.
    /// Signals of exceeded limits are ignored: a write beyond the limit fails.
    ///
    /// # Panics
    /// Panics if it does not listen in time.
    pub async fn start_limited(arguments: &[&str], limit: &str) -> Self {
        Self::start_logging(arguments, "json", Some(limit)).await
    }

    /// As [`start`](Self::start), with further environment variables.
    ///
    /// # Panics
    /// Panics if it does not listen in time.
    pub async fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = limited(arguments, None);
        let state = state_for(&mut command);
        command.envs(environment.iter().copied());
        Self::spawn(command, "json", state).await
    }

    async fn start_logging(arguments: &[&str], format: &str, limit: Option<&str>) -> Self {
        let mut command = limited(arguments, limit);
        let state = state_for(&mut command);
        Self::spawn(command, format, state).await
    }

    /// Starts the program in this log format and reads its log until it listens.
    async fn spawn(mut command: Command, format: &str, state: Scratch) -> Self {
        command
            .args(["--log-format", format])
            .env("PORTCULLIS_LOG", "trace");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start("portcullis", &mut command).expect("the program starts");
        let stderr = process.take_stderr().expect("standard error is piped");
        let stdout = process.take_stdout().expect("standard output is piped");
        let log = Log::read(ChildStderr::from_std(stderr).expect("a pipe"));
        let output = Log::read(ChildStdout::from_std(stdout).expect("a pipe"));
        let address = timeout(TIMEOUT, log.find(listen_address))
            .await
            .ok()
            .flatten();
        let address = address.unwrap_or_else(|| panic!("it does not listen:\n{}", log.text()));
        Self {
            process,
            address,
            log,
            output,
            _configuration: None,
            _state: state,
        }
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub async fn run(arguments: &[&str]) -> Finished {
        Self::run_with(arguments, &[]).await
    }

    /// Runs the program to its end, with further environment variables.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub async fn run_with(arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
        let mut command = limited(arguments, None);
        let _state = state_for(&mut command);
        let mut command = tokio::process::Command::from(command);
        let output = command
            .kill_on_drop(true)
            .envs(environment.iter().copied())
            .output();
        Finished::from(
            timeout(TIMEOUT, output)
                .await
                .expect("it ends")
                .expect("it starts"),
        )
    }

    /// Runs the program to its end, with this standard input.
    ///
    /// # Panics
    /// Panics if it does not read the input and end in time.
    pub async fn run_with_input(arguments: &[&str], input: &str) -> Finished {
        Self::run_command(limited(arguments, None), input).await
    }

    /// As [`run_with_input`](Self::run_with_input), with a limit of resources; see
    /// [`start_limited`](Self::start_limited).
    ///
    /// # Panics
    /// Panics if it does not read the input and end in time.
    pub async fn run_limited(arguments: &[&str], limit: &str, input: &str) -> Finished {
        Self::run_command(limited(arguments, Some(limit)), input).await
    }

    /// Runs a bridge to its end, with further environment variables. Sends it one message, and ends
    /// its input after the first line of its output: a bridge whose input has ended gives a request
    /// little time.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub async fn run_bridge(
        arguments: &[&str],
        environment: &[(&str, &str)],
        message: &Value,
    ) -> Finished {
        let mut command = limited(arguments, None);
        command.envs(environment.iter().copied());
        let mut bridge = spawn_piped(command);
        let mut input = bridge.stdin.take().expect("standard input is piped");
        let output = bridge.stdout.take().expect("standard output is piped");
        let mut output = BufReader::new(output);
        let mut answered = Vec::new();
        let exchange = async {
            let line = format!("{message}\n");
            input.write_all(line.as_bytes()).await.expect("it reads");
            output
                .read_until(b'\n', &mut answered)
                .await
                .expect("it answers");
            drop(input);
            output.read_to_end(&mut answered).await.expect("it ends");
        };
        let ended = async {
            tokio::join!(exchange, bridge.wait_with_output())
                .1
                .expect("it ran")
        };
        let mut ended = timeout(TIMEOUT, ended).await.expect("it ends");
        ended.stdout = answered;
        Finished::from(ended)
    }

    async fn run_command(command: Command, input: &str) -> Finished {
        let mut child = spawn_piped(command);
        let mut stdin = child.stdin.take().expect("standard input is piped");
        let output = async {
            stdin.write_all(input.as_bytes()).await.expect("it reads");
            drop(stdin);
            child.wait_with_output().await.expect("it ran")
        };
        Finished::from(timeout(TIMEOUT, output).await.expect("it ends"))
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process identifier.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the access log line of a request and returns it.
    ///
    /// # Panics
    /// Panics if there is no such line in time, or the response has no request ID.
    pub async fn access_line(&self, response: &HttpResponse) -> Value {
        let id = response
            .header("x-request-id")
            .unwrap_or_else(|| panic!("no request id: {response:?}"));
        self.logged(id, |line| {
            line["message"] == "request" && line["request.id"] == id
        })
        .await
    }

    /// Asserts that the access log line of a response has this reason code, and that the response
    /// does not contain it.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_denied(&self, response: &HttpResponse, code: &str) {
        let line = self.access_line(response).await;
        assert_eq!(line["deny.code"], code, "{response:?}\n{line}");
        assert_eq!(line["http.status"], response.status, "{line}");
        assert_explained(code, response.status);
        assert!(
            !format!("{response:?}").contains(code),
            "the response contains the reason: {response:?}"
        );
    }

    /// Calls [`assert_denied`](Self::assert_denied) for each response.
    ///
    /// # Panics
    /// Panics if an assertion fails or there is no response.
    pub async fn assert_all_denied(&self, denied: &[(HttpResponse, &str)]) {
        assert!(!denied.is_empty(), "there is no case");
        for (response, code) in denied {
            self.assert_denied(response, code).await;
        }
    }

    /// Waits for the first JSON log line that contains a text and satisfies a predicate, and
    /// returns it.
    ///
    /// # Panics
    /// Panics if there is no such line in time.
    pub async fn logged(&self, text: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let line = timeout(TIMEOUT, self.log.wait(text, wanted))
            .await
            .ok()
            .flatten();
        line.unwrap_or_else(|| panic!("no such line with {text:?}:\n{}", self.log.text()))
    }

    /// Waits for the first log line that contains all texts, in either log format, and returns it.
    ///
    /// # Panics
    /// Panics if there is no such line in time.
    pub async fn logged_line(&self, texts: &[&str]) -> String {
        let all = |line: &str| {
            texts
                .iter()
                .all(|text| line.contains(text))
                .then(|| line.to_owned())
        };
        let line = timeout(TIMEOUT, self.log.find(all)).await.ok().flatten();
        line.unwrap_or_else(|| panic!("no line with {texts:?}:\n{}", self.log.text()))
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub async fn stop(self) -> Finished {
        self.signal(Signal::TERM);
        self.wait().await
    }

    /// Waits for the end of the program.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub async fn wait(mut self) -> Finished {
        let status = timeout(TIMEOUT, self.process.wait())
            .await
            .expect("it ends")
            .expect("it can be waited for");
        let ended = async {
            self.log.ended().await;
            self.output.ended().await;
        };
        timeout(TIMEOUT, ended)
            .await
            .expect("no other process has its output open");
        Finished {
            code: status.code(),
            stdout: self.output.text(),
            stderr: self.log.text(),
        }
    }

    /// Returns its resident memory in bytes.
    ///
    /// # Panics
    /// Panics if it has ended.
    pub fn resident(&self) -> usize {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.id())).expect("a running process");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("the resident memory");
        line.trim()
            .trim_end_matches(" kB")
            .parse::<usize>()
            .expect("a number")
            * 1024
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
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

/// Sets a directory for the state of a server without `state_dir`, as systemd does. The directory
/// is removed when the returned value is dropped.
fn state_for(command: &mut Command) -> Scratch {
    let state = Scratch::path_for("state");
    command.env("STATE_DIRECTORY", state.as_str());
    state
}

/// Returns the command with these arguments, under a limit of resources if there is one.
fn limited(arguments: &[&str], limit: Option<&str>) -> Command {
    let mut command = match limit {
        None => portcullis_command(portcullis_program()),
        Some(limit) => limited_command(limit),
    };
    command.args(arguments);
    command
}

/// Starts a program whose standard streams are pipes. It is killed when dropped.
fn spawn_piped(command: Command) -> Child {
    let mut command = tokio::process::Command::from(command);
    command
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("it starts")
}
