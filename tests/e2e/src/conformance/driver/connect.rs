//! `portcullis connect`, driven over its standard input and output as an MCP client does.

use std::{path::Path, process::Stdio};

use anyhow::{Context as _, ensure};
use portcullis_mcp::{ErrorCode, meta};
use portcullis_mcp_client::ServerRequestHandler as _;
use portcullis_scenarios::{Process, Scratch, portcullis_command};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout},
};

use super::{accepting_handler::AcceptingHandler, arguments, connect_options};

const MODERN: &str = "2026-07-28";
/// The error of a server that does not support the version of a request (MCP 2026-07-28, SEP-2575).
const UNSUPPORTED_VERSION: i64 = ErrorCode::UnsupportedProtocolVersion.value();
/// How often a server may request input for one call.
const MAX_INPUT_ROUNDS: usize = 8;

/// An error of `connect` itself, which has a reason. Errors of the server have none.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refused {
    /// The reason.
    pub(super) code: String,
    message: String,
}

/// Makes the calls of a scenario: those of the library's driver.
pub(super) async fn drive(
    program: &Path,
    url: &str,
    version: &str,
    context: &Value,
) -> anyhow::Result<()> {
    let store = Scratch::folder("conformance");
    let mut connect = portcullis_command(program);
    connect
        .args(["connect", url, "--store", store.as_str()])
        .args(connect_options::options(url, context, &store)?);
    connect.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::start("connect", &mut connect)?;
    let input = ChildStdin::from_std(process.take_stdin().context("no standard input")?)?;
    let output = ChildStdout::from_std(process.take_stdout().context("no standard output")?)?;
    let client = Client {
        input,
        output: BufReader::new(output).lines(),
        is_modern: version == MODERN,
        next_id: 1,
        has_retried: false,
    };
    client.make_calls(version, context).await?;
    let status = process.wait().await?;
    ensure!(status.success(), "connect ended with {status}");
    Ok(())
}

struct Client {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    is_modern: bool,
    next_id: i64,
    /// Whether a request was sent again because the server rejected its version.
    has_retried: bool,
}

impl Client {
    /// Opens a session if the revision needs one, and calls what the scenario expects.
    async fn make_calls(mut self, version: &str, context: &Value) -> anyhow::Result<()> {
        if !self.is_modern {
            let client = json!({ "name": "conformance", "version": "1" });
            let params = json!({ "protocolVersion": version, "capabilities": AcceptingHandler.capabilities(), "clientInfo": client });
            self.call("initialize", params).await?;
            self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
                .await?;
        }
        let tools = self
            .call("tools/list", json!({}))
            .await?
            .unwrap_or_default();
        for tool in tools["tools"].as_array().into_iter().flatten() {
            let params = json!({ "name": tool["name"], "arguments": arguments(context, tool) });
            // The result of a tool does not matter.
            self.call("tools/call", params).await?;
        }
        Ok(())
    }

    /// Calls a method, with as many rounds of input as the server requests. `None` if the server
    /// returns an error.
    async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Option<Value>> {
        let mut round = params.clone();
        for _ in 0..MAX_INPUT_ROUNDS {
            let result = self.round(method, round).await?;
            match result {
                Some(result) if self.is_modern && result["resultType"] == "input_required" => {
                    round = with_input(&params, &result).await;
                }
                other => return Ok(other),
            }
        }
        anyhow::bail!("the server requests input again and again")
    }

    /// Sends one request, and responds to the requests of the server until the result.
    async fn round(&mut self, method: &str, mut params: Value) -> anyhow::Result<Option<Value>> {
        if self.is_modern {
            params["_meta"] = json!({
                meta::PROTOCOL_VERSION: MODERN,
                meta::CLIENT_INFO: { "name": "conformance", "version": "1" },
                meta::CLIENT_CAPABILITIES: AcceptingHandler.capabilities(),
            });
        }
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        loop {
            let line = self
                .output
                .next_line()
                .await?
                .with_context(|| format!("{method}: connect has ended"))?;
            let mut message: Value = serde_json::from_str(&line)?;
            match (message["method"].as_str(), message.get("id")) {
                (Some(asked), Some(asked_id)) => {
                    let answer = answer(asked, asked_id, &message["params"]).await;
                    self.send(&answer).await?;
                }
                (None, Some(answered)) if *answered == id => {
                    let error = &message["error"];
                    if error["code"] == UNSUPPORTED_VERSION && self.is_modern && !self.has_retried {
                        // `connect` forwards the error: selecting a version is the client's task.
                        let supported = error["data"]["supported"].as_array().into_iter().flatten();
                        self.has_retried = true;
                        if supported.into_iter().any(|version| version == MODERN) {
                            return Box::pin(self.round(method, params)).await;
                        }
                    }
                    if let Some(code) = error["data"]["reason"].as_str() {
                        return Err(Refused {
                            code: code.to_owned(),
                            message: error["message"].to_string(),
                        }
                        .into());
                    }
                    return Ok(error.is_null().then(|| message["result"].take()));
                }
                _ => {}
            }
        }
    }

    async fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        Ok(self
            .input
            .write_all(format!("{message}\n").as_bytes())
            .await?)
    }
}

/// Returns the answer to a request of the server.
async fn answer(method: &str, id: &Value, params: &Value) -> Value {
    let result = if method == "ping" {
        Some(json!({}))
    } else {
        AcceptingHandler.answer(method, params).await
    };
    match result {
        Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        None => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "the client has no such method" } })
        }
    }
}

/// Returns the parameters of the next round: the responses by name, and the server's state
/// unchanged.
async fn with_input(params: &Value, result: &Value) -> Value {
    let mut responses = Map::new();
    for (name, request) in result["inputRequests"].as_object().into_iter().flatten() {
        let method = request["method"].as_str().unwrap_or_default();
        if let Some(response) = AcceptingHandler.answer(method, &request["params"]).await {
            responses.insert(name.clone(), response);
        }
    }
    let mut next = params.clone();
    next["inputResponses"] = responses.into();
    if let Some(state) = result.get("requestState") {
        next["requestState"] = state.clone();
    }
    next
}
