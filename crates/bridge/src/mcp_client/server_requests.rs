//! Answers requests of a server with the [`ServerRequestHandler`](super::ServerRequestHandler).

use serde_json::{Map, Value, json};

use super::{McpClient, message_stream::MessageStream, outgoing::Outgoing};
use crate::error::McpError;

impl McpClient {
    /// Reads a stream of [`open_stream`](Self::open_stream) to its end. Requests on it are answered, and each message
    /// is passed to `observe` as it arrives.
    ///
    /// # Errors
    /// When the stream is interrupted, or a response is not accepted. [`McpError::SessionLost`] if the server has lost the
    /// session.
    pub async fn answer_stream(
        &self,
        mut stream: MessageStream,
        observe: &mut (dyn FnMut(Value) + Send),
    ) -> Result<(), McpError> {
        while let Some(message) = stream.next().await? {
            self.observe_and_answer(message, observe).await?;
        }
        Ok(())
    }

    /// Passes a message of a legacy stream to `observe`. Then answers it, if it is a request and there is a handler: that
    /// can wait for the user.
    ///
    /// # Errors
    /// When the server does not accept the response.
    pub(super) async fn observe_and_answer(
        &self,
        message: Value,
        observe: &mut (dyn FnMut(Value) + Send),
    ) -> Result<(), McpError> {
        let has = |name| message.get(name).is_some();
        let request = (self.request_handler.is_some() && has("id") && has("method")).then(|| message.clone());
        observe(message);
        match request {
            Some(request) => self.answer(&request).await,
            None => Ok(()),
        }
    }

    async fn answer(&self, message: &Value) -> Result<(), McpError> {
        let (Some(handler), Some(id)) = (&self.request_handler, message.get("id")) else { return Ok(()) };
        let Some(method) = message.get("method").and_then(Value::as_str) else { return Ok(()) };
        let params = message.get("params").unwrap_or(&Value::Null);
        let result = match method {
            "ping" => Some(json!({})),
            _ => handler.answer(method, params).await,
        };
        let sent = self.send(&Outgoing::response(id.clone(), result)).await;
        sent.map_err(|error| if self.lost_session(&error) { McpError::SessionLost } else { error })
    }

    /// The parameters for the next round of a request whose result requires input (2026-07-28): the responses by name,
    /// and the server's state unchanged. None if a request cannot be answered.
    pub(super) async fn with_input(&self, params: Option<&Value>, result: &Value) -> Option<Value> {
        let handler = self.request_handler.as_ref()?;
        let mut responses = Map::new();
        for (name, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let method = request.get("method").and_then(Value::as_str)?;
            let params = request.get("params").unwrap_or(&Value::Null);
            responses.insert(name.clone(), handler.answer(method, params).await?);
        }
        let mut params = params.and_then(Value::as_object).cloned().unwrap_or_default();
        // The state of an earlier round is not repeated.
        params.remove("requestState");
        params.insert("inputResponses".into(), responses.into());
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".into(), state.clone());
        }
        Some(params.into())
    }
}
