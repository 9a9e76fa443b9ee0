//! [`SessionUpstream`]: an MCP server whose only tool returns the session of the call.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::Method;
use portcullis_scenarios::{ChannelBody, RecordedRequest, Upstream};
use serde_json::{Value, json};

/// An MCP server of the revision 2025-11-25. A call without a session that it has opened gets 404.
pub(super) struct SessionUpstream {
    upstream: Upstream,
    opened: Arc<AtomicUsize>,
}

impl SessionUpstream {
    /// Starts an upstream that keeps its streams open.
    pub(super) async fn start() -> Self {
        let opened = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&opened);
        let held = parking_lot::Mutex::new(Vec::new());
        let streams = [("content-type", "text/event-stream")];
        let upstream = Upstream::scripted(move |request: &RecordedRequest| {
            if request.method == Method::GET {
                let (sender, body) = ChannelBody::new();
                held.lock().push(sender);
                return Some(Upstream::streaming(200, &streams, body));
            }
            let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            message.get("id")?;
            Some(answer(request, &message, &counter))
        });
        Self {
            upstream: upstream.await,
            opened,
        }
    }

    /// Returns the value of `upstream` in a configuration.
    pub(super) fn setting(&self) -> String {
        self.upstream.setting()
    }

    /// Returns the number of sessions that were opened.
    pub(super) fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

/// Answers a message, and counts opened sessions.
fn answer(
    request: &RecordedRequest,
    message: &Value,
    opened: &AtomicUsize,
) -> http::Response<portcullis_scenarios::ResponseBody> {
    const JSON: (&str, &str) = ("content-type", "application/json");
    let reply = |status, headers: &[(&str, &str)], member: &str, value: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": message["id"], member: value }).to_string();
        Upstream::response(status, headers, body)
    };
    let session = request.header("mcp-session-id");
    let is_open = |session: &str| {
        let number = session
            .strip_prefix("session-")
            .and_then(|number| number.parse::<usize>().ok());
        number.is_some_and(|number| (1..=opened.load(Ordering::Relaxed)).contains(&number))
    };
    match (message["method"].as_str(), session) {
        (Some("initialize"), _) => {
            let session = format!("session-{}", opened.fetch_add(1, Ordering::Relaxed) + 1);
            let result = json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "restarts", "version": "1" },
            });
            reply(200, &[JSON, ("mcp-session-id", &session)], "result", result)
        }
        (Some("tools/call"), Some(session)) if is_open(session) => reply(
            200,
            &[JSON],
            "result",
            json!({ "content": [{ "type": "text", "text": session }] }),
        ),
        (Some("tools/list"), Some(session)) if is_open(session) => {
            let tool = json!({ "name": "session", "inputSchema": { "type": "object" } });
            reply(200, &[JSON], "result", json!({ "tools": [tool] }))
        }
        (_, Some(session)) if !is_open(session) => Upstream::response(404, &[], ""),
        _ => reply(
            200,
            &[JSON],
            "error",
            json!({ "code": -32601, "message": "method not found" }),
        ),
    }
}
