//! Calls: sends a request, and retries it where the protocol allows it.

use std::time::Duration;

use http::{HeaderValue, Method, header};
use portcullis_discovery::{FetchRequest, UrlPolicy};
use portcullis_mcp::{ErrorCode, Revision, header as names};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    McpClient,
    message_stream::{self, Answer, MessageStream, Step},
    outgoing::Outgoing,
};
use crate::{
    error::{McpError, RpcError},
    response::is_unknown_session,
    resumption::{MAX_RESUME_AFTER, MAX_RESUMES, RESUME_AFTER},
    tool_headers::{MAX_PAGES, next_cursor},
};

/// The maximum number of times that a server can request input during one call.
const MAX_ROUNDS: u32 = 16;

/// What was done already during a call to let it succeed when it is sent again.
#[derive(Default)]
struct Recoveries {
    /// The server rejected the version that it lists as supported.
    revision: bool,
    /// The tools were read, because the server requires other headers.
    tools: bool,
    /// A new session was opened.
    session: bool,
}

impl McpClient {
    /// Calls a method and returns its result. Messages before the result are ignored.
    ///
    /// # Errors
    /// [`McpError::Rpc`] for an error of the server; otherwise when a request fails.
    pub async fn call(&self, method: &str, params: Option<Value>) -> Result<Value, McpError> {
        self.call_with_observer(method, params, &mut |_| ()).await
    }

    /// Calls a method, passes each message before the result to `observe` as it arrives, and returns the result.
    ///
    /// Requests of the server are passed too, and answered if there is a handler
    /// ([`with_request_handler`](Self::with_request_handler)). A result of 2026-07-28 that requires input is answered
    /// too, up to 16 times. An interrupted legacy stream is resumed if the server supports it. If the server has lost
    /// the session, for example after a step-up for another user, a new one is opened, once. With 2026-07-28, tools
    /// with invalid `x-mcp-header` annotations are removed from lists, and annotated arguments of the others are also
    /// sent as headers.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_with_observer(
        &self,
        method: &str,
        params: Option<Value>,
        observe: &mut (dyn FnMut(Value) + Send),
    ) -> Result<Value, McpError> {
        let is_modern = self.settings.revision.is_modern();
        let (mut params, mut rounds, mut recoveries) = (params, 0, Recoveries::default());
        loop {
            let message = self.outgoing(Some(self.next_id()), method, params.clone())?;
            let result = match self.post(&message).await {
                Ok((_, answer)) => self.result(answer, observe).await,
                Err(error) => Err(error),
            };
            let mut result = match result {
                Ok(result) => result,
                Err(error) => {
                    self.recover(error, method, params.as_ref(), &mut recoveries).await?;
                    continue;
                }
            };
            if is_modern && result.get("resultType").is_some_and(|result_type| result_type == "input_required") {
                rounds += 1;
                if rounds > MAX_ROUNDS {
                    return Err(McpError::TooManyInputRounds);
                }
                let Some(next) = self.with_input(params.as_ref(), &result).await else { return Ok(result) };
                params = Some(next);
                continue;
            }
            if is_modern && method == "tools/list" {
                self.tools.learn(&mut result);
            }
            return Ok(result);
        }
    }

    /// Prepares a rejected call to be sent again. Each cause is handled once per call.
    ///
    /// # Errors
    /// Returns the error of the call if it would fail again, or the error of the preparation.
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
                if revision.is_modern() && !recoveries.revision && names_revision(rejection, revision) =>
            {
                recoveries.revision = true;
                Ok(())
            }
            McpError::Rpc(rejection)
                if rejection.code == ErrorCode::HeaderMismatch.value()
                    && method == "tools/call"
                    && !recoveries.tools =>
            {
                recoveries.tools = true;
                self.read_tools(params).await
            }
            _ if !revision.is_modern() && !recoveries.session && self.lost_session(&error) => {
                recoveries.session = true;
                self.initialize().await.map(drop)
            }
            _ => Err(error),
        }
    }

    /// Whether the server rejected a request without processing it, because it does not know the session.
    fn lost_session(&self, error: &McpError) -> bool {
        let is_unknown = error.rejection().is_some_and(|(status, code)| is_unknown_session(status, code));
        is_unknown && self.legacy_session().is_ok_and(|session| session.identifier.is_some())
    }

    /// Reads up to the response and returns its result.
    pub(super) async fn result(
        &self,
        mut answer: Answer,
        observe: &mut (dyn FnMut(Value) + Send),
    ) -> Result<Value, McpError> {
        let mut resumes = 0;
        loop {
            match answer.step().await? {
                Some(Step::Result(result)) => return Ok(result),
                Some(Step::Before(message)) => {
                    resumes = 0;
                    self.answer(&message).await?;
                    observe(message);
                }
                None => {
                    resumes += 1;
                    let (Some((event, retry)), true) = (answer.resumable(), resumes <= MAX_RESUMES) else {
                        return Err(McpError::StreamEnded);
                    };
                    let stream = self.resumed(event, retry).await?;
                    answer.resume(stream);
                }
            }
        }
    }

    /// Resumes a legacy stream after the delay that its server requires.
    async fn resumed(&self, event: &str, retry: Option<u64>) -> Result<MessageStream, McpError> {
        let session = self.legacy_session().map_err(|_| McpError::StreamEnded)?;
        let event = HeaderValue::from_str(event).map_err(|_| McpError::StreamEnded)?;
        sleep(retry.map_or(RESUME_AFTER, Duration::from_millis).min(MAX_RESUME_AFTER)).await;
        let request = || {
            let request = FetchRequest::new(Method::GET, self.endpoint.url().clone(), UrlPolicy::StartOrigin)
                .header(header::ACCEPT, HeaderValue::from_static("text/event-stream"))
                .header(names::LAST_EVENT_ID, event.clone());
            self.with_session(request, &session)
        };
        let answer = self.endpoint.send(request).await?;
        message_stream::stream(answer, &self.limits()).await
    }

    /// Sends a notification or a response.
    pub(super) async fn send(&self, message: &Outgoing) -> Result<(), McpError> {
        let answer = match self.connection() {
            Some(connection) => {
                self.endpoint.send_same_origin(|| self.post_request(message, &connection.message_url)).await?
            }
            None => self.endpoint.send(|| self.post_request(message, self.endpoint.url())).await?,
        };
        self.keep_session(&answer);
        message_stream::accepted(answer, &self.limits()).await
    }

    /// Reads tool definitions up to the one that is called.
    async fn read_tools(&self, params: Option<&Value>) -> Result<(), McpError> {
        let called = params.and_then(|params| params.get("name")?.as_str());
        let mut cursor: Option<Value> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.map(|cursor| json!({ "cursor": cursor }));
            let message = self.outgoing(Some(self.next_id()), "tools/list", params)?;
            let (_, answer) = self.post(&message).await?;
            let mut page = self.result(answer, &mut |_| ()).await?;
            self.tools.learn(&mut page);
            cursor = next_cursor(&page, called);
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the server rejected the version although it lists it as supported, as a deployment does during an upgrade.
fn names_revision(error: &RpcError, revision: Revision) -> bool {
    let supported = error.data.as_ref().and_then(|data| data.get("supported")).and_then(Value::as_array);
    error.code == ErrorCode::UnsupportedProtocolVersion.value()
        && supported.is_some_and(|supported| supported.iter().any(|one| one == revision.as_str()))
}
