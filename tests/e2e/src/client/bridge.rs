//! [`Client::connect`]: the stdio bridge, driven as an MCP client does.

use std::{
    fs::{self, File},
    process::Stdio,
};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::Process;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout},
    time::sleep,
};
use url::Url;

use super::{Client, PERIOD, Run, UserAction};
use crate::output::PANIC;

impl Client {
    /// Runs `portcullis connect <url> <more>` with a user who consents. Opens a session, lists the
    /// tools, and closes the input. Fails when there is no session, or the server has no tools.
    pub(crate) async fn connect(&self, url: &Url, more: &[&str]) -> anyhow::Result<Run> {
        let (name, mut command) = self.command("connect", url, more)?;
        let log = self.folder.join(format!("{name}.log"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?);
        let mut process = Process::start(name.clone(), &mut command)?;
        let input = ChildStdin::from_std(process.take_stdin().context("no standard input")?)?;
        let stdout = ChildStdout::from_std(process.take_stdout().context("no standard output")?)?;
        let mut bridge = Bridge {
            client: self,
            name,
            input,
            output: BufReader::new(stdout).lines(),
            visited: None,
        };
        let listed = bridge.list_tools().await;
        let Bridge { input, visited, .. } = bridge;
        drop(input);
        let status = process.wait().await?;
        let output = fs::read_to_string(&log)?;
        ensure!(
            !output.contains(PANIC),
            "portcullis connect: a panic: {output}"
        );
        listed.with_context(|| output.trim_end().to_owned())?;
        Ok(Run {
            code: status.code(),
            output,
            authorization: visited,
        })
    }
}

struct Bridge<'a> {
    client: &'a Client,
    name: String,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    visited: Option<(Url, super::Visit)>,
}

impl Bridge<'_> {
    /// Opens a session and lists the tools.
    async fn list_tools(&mut self) -> anyhow::Result<()> {
        let client = json!({ "name": "e2e", "version": "1" });
        let initialize =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let opened = self.request(1, "initialize", initialize).await?;
        ensure!(
            opened["protocolVersion"].is_string(),
            "initialize: expected a protocol version, got {opened}"
        );
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await?;
        let listed = self.request(2, "tools/list", json!({})).await?;
        let tools = listed["tools"].as_array().map_or(0, Vec::len);
        ensure!(tools > 0, "tools/list: expected tools, got {listed}");
        Ok(())
    }

    async fn send(&mut self, message: Value) -> anyhow::Result<()> {
        Ok(self
            .input
            .write_all(format!("{message}\n").as_bytes())
            .await?)
    }

    /// Sends a request and returns its result. Skips notifications. The user acts while it waits.
    async fn request(&mut self, id: i64, method: &str, params: Value) -> anyhow::Result<Value> {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        loop {
            tokio::select! {
                line = self.output.next_line() => {
                    let line = line?.with_context(|| format!("{method}: expected a response, got the end"))?;
                    let mut response: Value = serde_json::from_str(&line)?;
                    if response["id"] == id {
                        ensure!(response["error"].is_null(), "{method}: {}", response["error"]);
                        return Ok(response["result"].take());
                    }
                }
                () = sleep(PERIOD), if self.visited.is_none() => {
                    self.visited = self.client.act_if_opened(&self.name, UserAction::Consent(&[])).await?;
                }
            }
        }
    }
}
