use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use portcullis_mcp::ErrorCode;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::{
    BridgeSettings,
    gate::Gate,
    kept::Kept,
    listen::Listening,
    message::{self, Id, Kind, Message},
    output::Output,
    pending::{Asker, Entry, Pending, Purpose},
    session::Sessions,
    wire::{Refused, Wire},
};
use crate::{McpError, mcp::ToolHeaders};

/// What all parts of a running bridge share.
pub(super) struct Hub {
    pub(super) settings: Arc<BridgeSettings>,
    pub(super) wire: Wire,
    pub(super) output: Output,
    pub(super) pending: Pending,
    pub(super) sessions: Sessions,
    pub(super) tools: ToolHeaders,
    pub(super) kept: Kept,
    /// Closed while a handshake is under way.
    pub(super) handshake: Gate,
    /// Closed while the server does not know yet that the client has taken note of its outcome.
    pub(super) initialized: Gate,
    pub(super) listening: Listening,
    next_id: AtomicU64,
}

/// A request that is under way.
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) message: Message,
    /// Ends when the request is answered, refused or cancelled.
    pub(super) over: watch::Receiver<()>,
    /// What a refusal of its token leads to.
    pub(super) refused: Refused,
}

impl Hub {
    pub(super) fn new(settings: Arc<BridgeSettings>, wire: Wire, output: Output) -> Self {
        Self {
            sessions: Sessions::new(settings.session_header.clone()),
            settings,
            wire,
            output,
            pending: Pending::default(),
            tools: ToolHeaders::default(),
            kept: Kept::default(),
            handshake: Gate::default(),
            initialized: Gate::default(),
            listening: Listening::default(),
            next_id: AtomicU64::new(1),
        }
    }

    /// Passes on what the server sent. True when the answer to `awaited` was among it.
    ///
    /// # Errors
    /// When it is no JSON-RPC.
    pub(super) async fn pass(&self, data: Bytes, awaited: Option<&Request>) -> Result<bool, McpError> {
        let mut answered = false;
        for message in Message::parse_all(data).map_err(|_| McpError::InvalidResponse)? {
            match &message.kind {
                Kind::Response { id: Some(id) } => {
                    let id = id.clone();
                    self.answer(&id, message).await;
                    answered |= awaited.is_some_and(|request| request.id == id);
                }
                // The server could not read which request it was, and here it can only be this one.
                Kind::Response { id: None } => {
                    if let (Some(request), Some(error)) = (awaited, message.error()) {
                        let text = message::with_id(&request.id, error);
                        let kind = Kind::Response { id: Some(request.id.clone()) };
                        self.answer(&request.id, Message { text, kind }).await;
                        answered = true;
                    }
                }
                // What has been cancelled is not spoken of any more.
                Kind::Request { .. } | Kind::Notification { .. } => self.give(message.text).await,
            }
        }
        Ok(answered)
    }

    /// Passes on the answer to a request, once.
    async fn answer(&self, id: &Id, answer: Message) {
        let Some(Entry { asker, purpose, .. }) = self.pending.take(id) else {
            tracing::debug!("an answer came that nobody waits for");
            return;
        };
        let answer = match purpose {
            Purpose::Initialize { identifier, link } => {
                let result = answer.result().and_then(|result| serde_json::from_str::<Value>(result.get()).ok());
                if let Some(result) = result {
                    self.sessions.open(identifier, result.get("protocolVersion").and_then(Value::as_str), link);
                }
                answer
            }
            Purpose::Keeps(change) => {
                if answer.result().is_some() {
                    self.kept.change(change);
                }
                answer
            }
            Purpose::ModernToolsList => self.without_broken_tools(answer),
            Purpose::Plain | Purpose::Modern => answer,
        };
        match asker {
            Asker::Client => {
                self.listening.is_wanted();
                self.give(answer.text).await;
            }
            Asker::Bridge(waiting) => {
                let _ = waiting.send(answer);
            }
        }
    }

    /// Learns which arguments travel as headers. Tools whose annotations break the rules are left out, as clients of
    /// this transport must do.
    fn without_broken_tools(&self, answer: Message) -> Message {
        let count = |list: &Value| list.get("tools").and_then(Value::as_array).map(Vec::len);
        let Ok(mut whole) = serde_json::from_slice::<Value>(&answer.text) else { return answer };
        let Some(result) = whole.get_mut("result") else { return answer };
        let before = count(result);
        self.tools.learn(result);
        if count(result) == before {
            return answer;
        }
        Message { text: whole.to_string().into(), kind: answer.kind }
    }

    /// Tells the client that there is no answer, where it still waits for one.
    pub(super) async fn refuse(&self, id: &Id, error: &McpError) {
        let Some(entry) = self.pending.take(id) else { return };
        let text = explanation(error);
        tracing::warn!(reason = error.code(), "a request has no answer: {text}");
        if matches!(entry.asker, Asker::Client) {
            self.give(message::error_answer(Some(id), ErrorCode::InternalError, &text, error.code())).await;
        }
    }

    /// Begins a request of the bridge's own.
    pub(super) fn own(
        &self,
        method: &str,
        params: Option<&str>,
        purpose: Purpose,
        refused: Refused,
    ) -> (Request, oneshot::Receiver<Message>) {
        let id = Id::own(self.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        let asker = Asker::Bridge(sender);
        // A client that uses identifiers of this form gets no answer here, and hurts nobody else.
        let over = self.pending.begin(id.clone(), asker, purpose, usize::MAX);
        let over = over.unwrap_or_else(|| watch::channel(()).1);
        let message = message::request(&id, method, params);
        (Request { id, method: method.to_owned(), message, over, refused }, answer)
    }

    /// Gives the client a message. One that is gone is noticed where its output is written.
    pub(super) async fn give(&self, text: Bytes) {
        let _ = self.output.send(text).await;
    }
}

/// An error with its causes.
pub(super) fn explanation(error: &McpError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
