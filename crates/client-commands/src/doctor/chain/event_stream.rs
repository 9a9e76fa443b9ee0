//! Whether a client can open the stream of a server's own messages.

use std::time::Duration;

use portcullis_doctor::{Finding, Rule};
use portcullis_mcp_client::{McpClient, McpError};
use tokio::time::timeout;

use super::{described, status};

const STREAM: Rule = Rule::new("login.stream", "MCP transports");

/// The time limit for the head of the stream, much longer than the responses to the requests before
/// it took.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// Opens the stream and closes it again. A proxy that collects responses holds back its head, which
/// has no body yet. `None` over HTTP with SSE, where the stream has brought the other responses.
pub(super) async fn finding(client: &McpClient) -> Option<Finding> {
    let Ok(opened) = timeout(HEAD_LIMIT, client.open_stream()).await else {
        return Some(late_head());
    };
    let error = match opened {
        Ok(_) => return Some(Finding::met(STREAM, "the headers of the stream arrive")),
        Err(McpError::UnavailableInRevision) => return None,
        Err(error) => error,
    };
    Some(match status(&error) {
        Some(status) => Finding::note(
            STREAM,
            format!("the server has none: it answers a GET request with {status}"),
        ),
        None => Finding::warning(
            STREAM,
            described(&error),
            "answer a GET request with an event stream, or with 405",
        ),
    })
}

/// The server itself can be the cause, too: not every one sends the headers before an event.
fn late_head() -> Finding {
    let text = format!(
        "the headers of the stream do not arrive within {} s, although other responses do: clients wait, and progress can \
         arrive only with the result",
        HEAD_LIMIT.as_secs()
    );
    Finding::warning(
        STREAM,
        text,
        "let no proxy buffer the responses of this path (nginx: proxy_buffering off, and no proxy_ignore_headers with \
         X-Accel-Buffering); if none does, let the MCP server send the headers at once, before the first event",
    )
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc};

    use http::Method;
    use portcullis_client::StartUrl;
    use portcullis_discovery::{
        BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, OpenResponse,
    };
    use portcullis_doctor::Verdict;
    use portcullis_mcp_client::McpSettings;
    use portcullis_testkit::{FetchFn, Reply};
    use serde_json::json;

    use super::*;

    /// A server, behind a proxy that holds back the head of a GET response.
    struct Buffered(Arc<FetchFn>);

    impl Fetch for Buffered {
        fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
            self.0.fetch(request)
        }

        fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
            match request.method {
                Method::GET => Box::pin(pending()),
                _ => self.0.open(request),
            }
        }
    }

    /// A server that answers the handshake, and a GET request with `reply`.
    fn server(reply: Reply) -> Arc<FetchFn> {
        FetchFn::new(move |request| {
            if request.method == Method::GET {
                return Some(reply.clone());
            }
            let is_handshake = String::from_utf8_lossy(&request.body).contains("\"initialize\"");
            Some(match is_handshake {
                true => Reply::json(
                    200,
                    json!({
                        "jsonrpc": "2.0", "id": 1,
                        "result": { "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } },
                    }),
                ),
                false => Reply::status(202),
            })
        })
    }

    async fn found(fetch: Arc<dyn Fetch>) -> Finding {
        let start = StartUrl::parse("https://mcp.example.com/mcp").unwrap();
        let client = McpClient::new(start, fetch, None, McpSettings::default());
        client.open().await.unwrap();
        finding(&client).await.unwrap()
    }

    /// J9: a stream whose head is held back is a warning with the fix, after a limited time.
    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_buffers_is_recognized() {
        let buffered = Buffered(server(Reply::events(&[])));
        let late = timeout(HEAD_LIMIT * 2, found(Arc::new(buffered)))
            .await
            .unwrap();
        assert_eq!(late.verdict, Verdict::Warning);
        let fix = late.fix.unwrap();
        for words in ["proxy_buffering off", "X-Accel-Buffering", "MCP server"] {
            assert!(fix.contains(words), "{fix}");
        }
    }

    /// J9: a server without a stream is none that buffers.
    #[tokio::test]
    async fn other_responses_are_no_late_ones() {
        for (reply, verdict) in [
            (Reply::events(&["data: "]), Verdict::Met),
            (Reply::status(405), Verdict::Note),
            (Reply::json(404, "{}"), Verdict::Note),
            (Reply::json(200, "{}"), Verdict::Warning),
        ] {
            let finding = found(server(reply)).await;
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            assert_eq!(finding.rule.id, "login.stream");
        }
    }
}
