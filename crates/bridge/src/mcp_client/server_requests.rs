//! [`ServerRequestHandler`]: answers the requests of a server.

use portcullis_discovery::BoxFuture;
use serde_json::{Map, Value, json};

use super::{McpClient, message_stream::MessageStream, outgoing::Outgoing};
use crate::error::McpError;

/// Answers what a server asks its client in the course of a call: for input of a person (`elicitation/create`), for a
/// model's answer (`sampling/createMessage`), for its roots (`roots/list`).
pub trait ServerRequestHandler: Send + Sync + 'static {
    /// The capabilities to declare: those whose requests are answered.
    fn capabilities(&self) -> Value;

    /// The result for a request, or none when there is no such method here.
    fn answer<'a>(&'a self, method: &'a str, params: &'a Value) -> BoxFuture<'a, Option<Value>>;
}

/// JSON-RPC: there is no such method.
const METHOD_NOT_FOUND: (i64, &str) = (-32601, "the client has no such method");

impl McpClient {
    /// Reads a stream that [`open_stream`](Self::open_stream) has opened to its end: requests on it are answered, and
    /// each message is shown to `observe`.
    ///
    /// # Errors
    /// When the stream cannot be read on, or an answer is not accepted.
    pub async fn answer_stream(
        &self,
        mut stream: MessageStream,
        observe: &mut (dyn FnMut(Value) + Send),
    ) -> Result<(), McpError> {
        while let Some(message) = stream.next().await? {
            self.answer(&message).await?;
            observe(message);
        }
        Ok(())
    }

    /// Answers a message of a legacy stream, where it is a request and somebody is there to answer.
    pub(super) async fn answer(&self, message: &Value) -> Result<(), McpError> {
        let (Some(requests), Some(id)) = (&self.requests, message.get("id")) else { return Ok(()) };
        let Some(method) = message.get("method").and_then(Value::as_str) else { return Ok(()) };
        let params = message.get("params").unwrap_or(&Value::Null);
        let outcome = match method {
            "ping" => Ok(json!({})),
            _ => requests.answer(method, params).await.ok_or(METHOD_NOT_FOUND),
        };
        self.send(&Outgoing::response(id.clone(), outcome)).await
    }

    /// The parameters for the next round of a request whose result asks for input (2026-07-28): the answers by their
    /// names, and the server's state as it came. None when it asks for what nobody here can answer.
    pub(super) async fn with_input(&self, params: Option<&Value>, result: &Value) -> Option<Value> {
        let requests = self.requests.as_ref()?;
        let mut responses = Map::new();
        for (name, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let method = request.get("method").and_then(Value::as_str)?;
            let asked = request.get("params").unwrap_or(&Value::Null);
            responses.insert(name.clone(), requests.answer(method, asked).await?);
        }
        let mut params = params.and_then(Value::as_object).cloned().unwrap_or_default();
        // What an earlier round said is not said again.
        params.remove("requestState");
        params.insert("inputResponses".into(), responses.into());
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".into(), state.clone());
        }
        Some(params.into())
    }
}
