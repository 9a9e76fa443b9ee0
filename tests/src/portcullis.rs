use std::{
    net::SocketAddr,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::watch,
    time::timeout,
};

use crate::binary;

const PATIENCE: Duration = Duration::from_secs(20);

/// The real program, running. It is killed when dropped, and a scenario fails when it ever panicked.
pub struct Portcullis {
    child: Child,
    address: SocketAddr,
    log: Log,
}

/// What a program that ended by itself left behind.
pub struct Finished {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Portcullis {
    /// Starts `portcullis serve` with a configuration and waits until it listens.
    ///
    /// # Panics
    /// When it does not listen in time.
    pub async fn serve(configuration: &str) -> Self {
        let file = configuration_file(configuration);
        Self::start(&["serve", "--config", &file]).await
    }

    /// Starts the program with these arguments and waits until it listens.
    ///
    /// # Panics
    /// When it does not listen in time.
    pub async fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(arguments)
            .args(["--log-format", "json"])
            .env("PORTCULLIS_LOG", "trace")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let log = Log::read(child.stderr.take().expect("standard error is piped"));
        let listening = timeout(PATIENCE, log.wait_for("listening")).await;
        let listening = listening.unwrap_or_else(|_| panic!("it does not listen:\n{}", log.text()));
        let address = listening["listen.address"].as_str().and_then(|text| text.parse().ok()).expect("an address");
        Self { child, address, log }
    }

    /// Runs the program until it ends by itself.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn run(arguments: &[&str]) -> Finished {
        let child = Command::new(binary()).args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = timeout(PATIENCE, child).await.expect("it ends").expect("it starts");
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// The access line of a request. It waits for the line to be written.
    ///
    /// # Panics
    /// When there is none in time.
    pub async fn access_line(&self, request_id: &str) -> Value {
        let line = timeout(PATIENCE, self.log.wait(|line| line["message"] == "request" && line["request.id"] == request_id));
        line.await.unwrap_or_else(|_| panic!("no access line for {request_id}:\n{}", self.log.text()))
    }

    /// Everything that it has logged so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Asks it to stop, waits for its end, and gives its exit code.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn stop(mut self) -> Option<i32> {
        self.signal("TERM").await;
        let status = timeout(PATIENCE, self.child.wait()).await.expect("it ends").expect("it can be waited for");
        status.code()
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

/// Writes a configuration to a file of its own.
///
/// # Panics
/// When the file cannot be written.
pub(crate) fn configuration_file(text: &str) -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNTER: AtomicUsize = AtomicUsize::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("portcullis-{}-{number}.toml", std::process::id()));
    std::fs::write(&path, text).expect("a temporary file can be written");
    path.display().to_string()
}

/// The program's standard error, line by line.
#[derive(Clone)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    count: watch::Receiver<usize>,
}

impl Log {
    fn read(stderr: tokio::process::ChildStderr) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (counted, count) = watch::channel(0);
        let written = Arc::clone(&lines);
        tokio::spawn(async move {
            let mut stderr = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = stderr.next_line().await {
                let mut lines = written.lock().unwrap();
                lines.push(line);
                let _ = counted.send(lines.len());
            }
        });
        Self { lines, count }
    }

    async fn wait_for(&self, message: &str) -> Value {
        self.wait(|line| line["message"] == message).await
    }

    async fn wait(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut count = self.count.clone();
        let mut seen = 0;
        loop {
            let fresh: Vec<String> = self.lines.lock().unwrap()[seen..].to_vec();
            seen += fresh.len();
            let found = fresh.iter().filter_map(|line| serde_json::from_str(line).ok()).find(&wanted);
            if let Some(found) = found {
                return found;
            }
            if count.wait_for(|count| *count > seen).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }
}
