//! Calls: sends a request, and retries it where the protocol allows it.

use portcullis_mcp::{ErrorCode, Revision, header as names};
use serde_json::{Value, json, value::RawValue};
use tokio::time::sleep;

use super::{McpClient, server_requests::observe_value};
use crate::{
    error::{McpError, RpcError},
    response::{self, Answer, AnswerMessage},
    transport::{MAX_PAGES, MAX_RESUME_AFTER, is_temporary, is_unknown_session, json, next_cursor},
};

/// The maximum number of times that a server can request input during one call.
const MAX_INPUT_ROUNDS: u32 = 16;

/// What was done already during a call to let it succeed when it is sent again. Each is done once.
#[derive(Default)]
struct Recoveries {
    /// It was sent again, because the server rejected a version that it lists as supported.
    repeated: bool,
    /// The tools were read, because the server requires other headers.
    read_tools: bool,
    /// Another session was opened in place of a lost one.
    reopened_session: bool,
}

impl McpClient {
    /// Calls a method and returns its result. Messages before the result are ignored.
    ///
    /// A value can take 80 times the memory of its text: use [`call_raw`](Self::call_raw) for large
    /// results of servers that are not trusted.
    ///
    /// # Errors
    /// [`McpError::Rpc`] for an error of the server; [`McpError::StreamEnded`] or
    /// [`McpError::Fetch`] if a stream ends or breaks before the result and cannot be resumed;
    /// [`McpError::InvalidResponse`] for a result that a [`Value`] cannot represent, such as one
    /// with more than 128 levels; otherwise when a request fails.
    pub async fn call(&self, method: &str, params: Option<Value>) -> Result<Value, McpError> {
        self.call_with_observer(method, params, &mut |_| ()).await
    }

    /// As [`call_raw`](Self::call_raw), with values. A message before the result that a [`Value`]
    /// cannot represent is not passed to `observe`.
    ///
    /// # Errors
    /// As [`call`](Self::call) and [`call_raw`](Self::call_raw).
    pub async fn call_with_observer(
        &self,
        method: &str,
        params: Option<Value>,
        observe: &mut (dyn FnMut(Value) + Send),
    ) -> Result<Value, McpError> {
        let mut observe_text = |message: &RawValue| observe_value(message, observe);
        let result = self.call_raw(method, params, &mut observe_text).await?;
        serde_json::from_str(result.get()).map_err(|_| McpError::InvalidResponse)
    }

    /// Calls a method, passes the JSON text of each message before the result to `observe` as it
    /// arrives, and returns the text of the result. It takes at most twice the memory of the
    /// response.
    ///
    /// Requests of the server are passed too, and then answered if there is a handler
    /// ([`with_request_handler`](Self::with_request_handler)). With a handler, a result of
    /// 2026-07-28 that requires input is answered too, up to 16 times; without one, and if the
    /// handler cannot answer, it is returned like any result.
    ///
    /// An interrupted legacy stream is resumed if the server supports it: up to 8 times without an
    /// event, each after the server's delay or a growing one, but at most 30 s. A stream that is
    /// resumed can repeat messages: `observe` gets them again.
    ///
    /// If the server rejects the call because it has lost the session, for example after a step-up
    /// for another user, a new session is opened and the call is sent again, once. A call that the
    /// server has accepted is never sent again.
    ///
    /// With 2026-07-28, tools with invalid `x-mcp-header` annotations are removed from lists, and
    /// annotated arguments of the others are also sent as headers.
    ///
    /// The time limit of the settings is for the head of each response and for a JSON body. A
    /// response that is streamed has none: the caller must set one.
    ///
    /// # Errors
    /// As [`call`](Self::call). [`McpError::SessionLost`] if the server loses the session after it
    /// has accepted the call, which it can have executed. [`McpError::TooManyInputRounds`] if the
    /// server requires input more than 16 times.
    pub async fn call_raw(
        &self,
        method: &str,
        params: Option<Value>,
        observe: &mut (dyn FnMut(&RawValue) + Send),
    ) -> Result<Box<RawValue>, McpError> {
        let is_modern = self.settings.revision.is_modern();
        let mut params = params;
        let mut rounds = 0;
        let mut recoveries = Recoveries::default();
        loop {
            let message = self.outgoing(Some(self.next_id()), method, params.clone())?;
            let posted = match self.post(&message).await {
                Ok(posted) => posted,
                Err(rejection) => {
                    self.recover(rejection, method, params.as_ref(), &mut recoveries)
                        .await?;
                    continue;
                }
            };
            // From here on the server processes the call, which must not be sent again.
            let result = self.result(posted.answer, observe).await?;
            if is_modern && requires_input(&result) {
                rounds += 1;
                if rounds > MAX_INPUT_ROUNDS {
                    return Err(McpError::TooManyInputRounds);
                }
                let Some(next) = self.with_input(params.as_ref(), &result).await else {
                    return Ok(result);
                };
                params = Some(next);
                continue;
            }
            let mut filtered = String::new();
            if is_modern
                && method == "tools/list"
                && self.tools.learn_and_filter(&result, &mut filtered)?
            {
                return RawValue::from_string(filtered).map_err(|_| McpError::InvalidResponse);
            }
            return Ok(result);
        }
    }

    /// Prepares a call to be sent again whose POST was rejected. Each cause is handled once per
    /// call. Returns the error of the call if it would fail again, or the error of the preparation.
    async fn recover(
        &self,
        error: McpError,
        method: &str,
        params: Option<&Value>,
        recoveries: &mut Recoveries,
    ) -> Result<(), McpError> {
        let revision = self.settings.revision;
        match &error {
            McpError::Rpc(rejection)
                if revision.is_modern()
                    && !recoveries.repeated
                    && lists_revision(rejection, revision) =>
            {
                recoveries.repeated = true;
                Ok(())
            }
            McpError::Rpc(rejection)
                if rejection.code == ErrorCode::HeaderMismatch.value()
                    && method == "tools/call"
                    && !recoveries.read_tools =>
            {
                recoveries.read_tools = true;
                self.read_tools(params).await
            }
            _ if !revision.is_modern()
                && !recoveries.reopened_session
                && self.lost_session(&error) =>
            {
                recoveries.reopened_session = true;
                self.open().await
            }
            _ => Err(error),
        }
    }

    /// Whether the server rejected a request because it does not know the session. If it was the
    /// POST of a call, the call was not processed.
    pub(crate) fn lost_session(&self, error: &McpError) -> bool {
        let is_unknown = error
            .rejection()
            .is_some_and(|(status, code)| is_unknown_session(status, code));
        is_unknown
            && self
                .legacy_session()
                .is_ok_and(|session| session.identifier.is_some())
    }

    /// Reads a response up to its result, and answers the server's requests before it. An
    /// interrupted legacy stream is resumed, whether its body ends or breaks. Fails when the server
    /// reports an error, the response is not valid, or an interrupted stream cannot be resumed.
    pub(crate) async fn result(
        &self,
        mut answer: Answer,
        observe: &mut (dyn FnMut(&RawValue) + Send),
    ) -> Result<Box<RawValue>, McpError> {
        loop {
            match answer.next().await {
                Ok(Some(AnswerMessage::Result(result))) => return Ok(result),
                Ok(Some(AnswerMessage::BeforeResult(message))) => {
                    self.observe_and_answer(message, observe).await?
                }
                Ok(None) => self.resume(&mut answer, McpError::StreamEnded).await?,
                Err(error) if error.is_network_failure() => self.resume(&mut answer, error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Resumes a legacy stream after the delay that its server requires, but at most
    /// [`MAX_RESUME_AFTER`]. Failures of the network and of the server, and a busy server, count as
    /// attempts; any other rejection is final. Returns the cause of the interruption if the stream
    /// has no session or no event after which it can be resumed, the last failure after too many
    /// attempts, [`McpError::SessionLost`] if the session of the call has ended, and any other
    /// final rejection.
    async fn resume(&self, answer: &mut Answer, mut cause: McpError) -> Result<(), McpError> {
        let Some(generation) = answer.generation else {
            return Err(cause);
        };
        let Some(stream) = answer.own_stream() else {
            return Err(cause);
        };
        while let Some((event_id, delay)) = stream.next_attempt() {
            sleep(delay.min(MAX_RESUME_AFTER)).await;
            // The identifier of the session can have changed.
            let current = self
                .session
                .current()
                .filter(|current| current.generation == generation);
            let Some(session) = current else {
                return Err(McpError::SessionLost);
            };
            let request = || {
                let request = self
                    .get_stream()
                    .header(names::LAST_EVENT_ID, event_id.clone());
                self.in_session(request, &session)
            };
            let resumed = match self.endpoint.send(request).await {
                Ok(response) => response::event_stream(response, &self.limits()).await,
                Err(error) => Err(error),
            };
            match resumed {
                Ok(resumed) => {
                    stream.resume_with(resumed);
                    return Ok(());
                }
                Err(error) if can_succeed_later(&error) => cause = error,
                Err(error) if self.lost_session(&error) => return Err(McpError::SessionLost),
                Err(error) => return Err(error),
            }
        }
        Err(cause)
    }

    /// Reads and stores tool definitions up to the one that is called, at most [`MAX_PAGES`] pages.
    async fn read_tools(&self, params: Option<&Value>) -> Result<(), McpError> {
        let Some(called) = params.and_then(|params| params.get("name")?.as_str()) else {
            return Ok(());
        };
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.map(|cursor| json!({ "cursor": cursor }));
            let message = self.outgoing(Some(self.next_id()), "tools/list", params)?;
            let posted = self.post(&message).await?;
            let page = self.result(posted.answer, &mut |_| ()).await?;
            self.tools.learn_and_filter(&page, &mut String::new())?;
            cursor = next_cursor(&page, called);
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Whether a result of 2026-07-28 requires input.
fn requires_input(result: &RawValue) -> bool {
    /// The length of `"input_required"`, written as escapes.
    const MAX_TYPE: usize = 128;
    let result_type = json::member(result, "resultType")
        .and_then(|result_type| json::string(result_type, MAX_TYPE));
    result_type.as_deref() == Some("input_required")
}

/// Whether a later attempt can succeed: the network or the server has failed, or the server is
/// busy.
fn can_succeed_later(error: &McpError) -> bool {
    error.is_network_failure()
        || error
            .rejection()
            .is_some_and(|(status, _)| is_temporary(status))
}

/// Whether the server rejected the version although it lists it as supported, as a deployment does
/// during an upgrade.
fn lists_revision(error: &RpcError, revision: Revision) -> bool {
    let supported = error
        .data
        .as_ref()
        .and_then(|data| data.get("supported"))
        .and_then(Value::as_array);
    error.code == ErrorCode::UnsupportedProtocolVersion.value()
        && supported.is_some_and(|supported| supported.iter().any(|one| one == revision.as_str()))
}
