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

use super::{Asked, Client, PERIOD, Run};
use crate::walks::output::PANIC;

impl Client {
    /// Runs `portcullis connect <url> <more>` with a person who consents: opens a session, lists the tools, and ends.
    ///
    /// # Errors
    /// Fails when there is no session, or the server has no tools.
    pub(in crate::walks) async fn connect(&self, url: &Url, more: &[&str]) -> anyhow::Result<Run> {
        let (name, mut command) = self.command("connect", url, more)?;
        let log = self.folder.join(format!("{name}.log"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut process = Process::start(name.clone(), &mut command)?;
        let input = ChildStdin::from_std(process.take_stdin().context("no standard input")?)?;
        let output = ChildStdout::from_std(process.take_stdout().context("no standard output")?)?;
        let mut bridge = Bridge { client: self, name, input, output: BufReader::new(output).lines(), visited: None };
        let listed = bridge.list_tools().await;
        let Bridge { input, visited, .. } = bridge;
        drop(input);
        let status = process.wait().await?;
        let written = fs::read_to_string(&log)?;
        ensure!(!written.contains(PANIC), "portcullis connect: a panic: {written}");
        listed.with_context(|| written.trim_end().to_owned())?;
        Ok(Run { code: status.code(), written, asked: visited })
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
    async fn list_tools(&mut self) -> anyhow::Result<()> {
        let client = json!({ "name": "e2e", "version": "1" });
        let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let opened = self.ask(1, "initialize", initialize).await?;
        ensure!(opened["protocolVersion"].is_string(), "initialize: expected a protocol version, got {opened}");
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        let listed = self.ask(2, "tools/list", json!({})).await?;
        let tools = listed["tools"].as_array().map_or(0, Vec::len);
        ensure!(tools > 0, "tools/list: expected tools, got {listed}");
        Ok(())
    }

    async fn send(&mut self, message: Value) -> anyhow::Result<()> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes()).await?)
    }

    /// Sends a request and returns its result. Meanwhile the person answers. Notifications are skipped.
    async fn ask(&mut self, id: i64, method: &str, params: Value) -> anyhow::Result<Value> {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        loop {
            tokio::select! {
                line = self.output.next_line() => {
                    let line = line?.with_context(|| format!("{method}: expected an answer, got the end"))?;
                    let mut answer: Value = serde_json::from_str(&line)?;
                    if answer["id"] == id {
                        ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                        return Ok(answer["result"].take());
                    }
                }
                () = sleep(PERIOD), if self.visited.is_none() => {
                    self.visited = self.client.answer_if_asked(&self.name, Asked::Consents(&[])).await?;
                }
            }
        }
    }
}
