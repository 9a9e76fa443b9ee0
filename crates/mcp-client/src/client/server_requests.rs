//! Answers requests of a server with the [`ServerRequestHandler`](super::ServerRequestHandler).

use bytes::Bytes;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    client::McpClient, error::McpError, message_head::MessageHead, message_stream::MessageStream,
    outgoing::Outgoing,
};

impl McpClient {
    /// Reads a stream of [`open_stream`](Self::open_stream) to its end. Requests on it are
    /// answered, and each message is passed to `observe` as it arrives, unless a [`Value`] cannot
    /// represent it.
    ///
    /// # Errors
    /// When the stream is interrupted, or a response is not accepted. [`McpError::SessionLost`] if
    /// the server has lost the session.
    pub async fn answer_stream(
        &self,
        mut stream: MessageStream,
        observe: &mut (dyn FnMut(Value) + Send),
    ) -> Result<(), McpError> {
        let mut observe_text = |message: &RawValue| observe_value(message, observe);
        while let Some(message) = stream.next_text().await? {
            self.observe_and_answer(message, &mut observe_text).await?;
        }
        Ok(())
    }

    /// Passes a message of a legacy stream to `observe`. Then answers it, if it is a request and
    /// there is a handler: that can wait for the user. Fails when the server does not accept the
    /// response.
    pub(crate) async fn observe_and_answer(
        &self,
        message: Bytes,
        observe: &mut (dyn FnMut(&RawValue) + Send),
    ) -> Result<(), McpError> {
        observe(serde_json::from_slice(&message).map_err(|_| McpError::InvalidResponse)?);
        let head = MessageHead::parse(&message)?;
        let (Some(handler), Some(id), Some(_)) = (&self.request_handler, head.id, head.method)
        else {
            return Ok(());
        };
        let Some(method) = head.method_name() else {
            return Ok(());
        };
        let id: Value = serde_json::from_str(id.get()).map_err(|_| McpError::InvalidResponse)?;
        let params = head
            .params
            .map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()));
        let params = params.map_err(|_| McpError::InvalidResponse)?;
        let result = match method.as_str() {
            "ping" => Some(json!({})),
            method => handler.answer(method, &params).await,
        };
        let sent = self.send(&Outgoing::response(id, result)).await;
        sent.map_err(|error| {
            if self.lost_session(&error) {
                McpError::SessionLost
            } else {
                error
            }
        })
    }

    /// The parameters for the next round of a request whose result requires input (2026-07-28): the
    /// responses by name, and the server's state unchanged. None if a request cannot be answered.
    pub(crate) async fn with_input(
        &self,
        params: Option<&Value>,
        result: &RawValue,
    ) -> Option<Value> {
        let handler = self.request_handler.as_ref()?;
        let result: Value = serde_json::from_str(result.get()).ok()?;
        let mut responses = Map::new();
        for (name, request) in result
            .get("inputRequests")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let method = request.get("method").and_then(Value::as_str)?;
            let params = request.get("params").unwrap_or(&Value::Null);
            responses.insert(name.clone(), handler.answer(method, params).await?);
        }
        let mut params = params
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        // The state of an earlier round is not repeated.
        params.remove("requestState");
        params.insert("inputResponses".into(), responses.into());
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".into(), state.clone());
        }
        Some(params.into())
    }
}

/// Passes a message to an observer of values, if a value can represent it.
pub(crate) fn observe_value(message: &RawValue, observe: &mut (dyn FnMut(Value) + Send)) {
    if let Ok(value) = serde_json::from_str(message.get()) {
        observe(value);
    }
}
