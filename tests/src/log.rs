//! [`Log`]: the lines that a program writes.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    sync::watch,
};

/// The lines that a program writes. Clones share them.
#[derive(Clone)]
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    count: watch::Receiver<usize>,
}

impl Log {
    /// Reads the lines in a task until the program closes its end.
    pub(crate) fn read(source: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (counted, count) = watch::channel(0);
        let written = Arc::clone(&lines);
        tokio::spawn(async move {
            let mut source = BufReader::new(source).split(b'\n');
            while let Ok(Some(line)) = source.next_segment().await {
                let mut lines = written.lock();
                lines.push(String::from_utf8_lossy(&line).into_owned());
                let _ = counted.send(lines.len());
            }
        });
        Self { lines, count }
    }

    /// Waits for the first JSON line that contains a text and satisfies a predicate. Returns `None`
    /// if the program ends without it.
    pub(crate) async fn wait(&self, text: &str, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        self.find(|line| {
            let line = line
                .contains(text)
                .then(|| serde_json::from_str(line).ok())??;
            wanted(&line).then_some(line)
        })
        .await
    }

    /// Waits for the first line for which `found` returns a value. Returns `None` if the program
    /// ends without it.
    pub(crate) async fn find<T>(&self, found: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut count = self.count.clone();
        let mut seen = 0;
        loop {
            let first = {
                let lines = self.lines.lock();
                let first = lines[seen..].iter().find_map(|line| found(line));
                seen = lines.len();
                first
            };
            if first.is_some() {
                return first;
            }
            if count.wait_for(|count| *count > seen).await.is_err() {
                return None;
            }
        }
    }

    /// Waits until the program has closed its end.
    pub(crate) async fn ended(&self) {
        let mut count = self.count.clone();
        while count.changed().await.is_ok() {}
    }

    /// Returns the lines so far.
    pub(crate) fn text(&self) -> String {
        self.lines.lock().join("\n")
    }
}
