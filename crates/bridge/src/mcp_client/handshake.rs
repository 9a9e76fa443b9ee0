//! The handshake of the legacy versions.

use http::HeaderValue;
use portcullis_mcp::Revision;
use serde_json::{Value, json};

use super::{McpClient, http_sse::SseConnection, outgoing::Outgoing, response::Answer, sending::Posted};
use crate::{error::McpError, http_sse::suggests_http_sse};

/// The revision whose transport is HTTP with SSE.
const HTTP_SSE_REVISION: &str = "2024-11-05";

impl McpClient {
    /// Performs the handshake of the legacy versions (`initialize`, then `notifications/initialized`) and returns its
    /// result. 2026-07-28 has no handshake: nothing is sent, and the result is `None`. If the server rejects the
    /// handshake as servers of 2024-11-05 do, HTTP with SSE is used.
    ///
    /// # Errors
    /// When a request fails, or the server's version is not a known legacy version. 2024-11-05 is accepted over HTTP
    /// with SSE only.
    pub async fn initialize(&self) -> Result<Option<Value>, McpError> {
        if self.settings.revision.is_modern() {
            return Ok(None);
        }
        self.session.clear();
        let params = json!({
            "protocolVersion": self.settings.revision.as_str(),
            "capabilities": self.capabilities(),
            "clientInfo": self.client_info(),
        });
        let message = Outgoing::request(self.next_id(), "initialize", Some(params));
        let opened = match self.post(&message).await {
            Ok(Posted { session_identifier, answer }) => Opened { session_identifier, answer, connection: None },
            Err(error) if error.rejection().is_some_and(|(status, code)| suggests_http_sse(status, code)) => {
                self.open_over_sse(&message, error).await?
            }
            Err(error) => return Err(error),
        };
        let Opened { session_identifier, answer, connection } = opened;
        let result = self.result(answer, &mut |_| ()).await?;
        let version = result.get("protocolVersion").and_then(Value::as_str);
        let revision = negotiated_revision(version, connection.is_some())?;
        self.session.open(session_identifier, revision, connection);
        self.notify("notifications/initialized", None).await?;
        Ok(Some(result))
    }

    /// Sends the handshake over HTTP with SSE. If the server does not support that either, the error is `rejection`, the
    /// server's first response, which says more.
    async fn open_over_sse(&self, message: &Outgoing, rejection: McpError) -> Result<Opened, McpError> {
        let connection = match SseConnection::open(&self.endpoint, self.settings.max_message).await {
            Err(McpError::NoSseEndpoint) => return Err(rejection),
            connection => connection?,
        };
        let answer = self.post_over_sse(message, &connection).await?;
        Ok(Opened { session_identifier: None, answer, connection: Some(connection) })
    }
}

/// A handshake whose response is not read yet.
struct Opened {
    session_identifier: Option<HeaderValue>,
    answer: Answer,
    /// The connection, if the server uses HTTP with SSE.
    connection: Option<SseConnection>,
}

/// Returns the revision that the server has selected: a legacy one, or `None` for 2024-11-05.
///
/// # Errors
/// [`McpError::UnsupportedRevision`] for other versions, and for 2024-11-05 over Streamable HTTP, which it does not have.
fn negotiated_revision(version: Option<&str>, is_http_sse: bool) -> Result<Option<Revision>, McpError> {
    if is_http_sse && version == Some(HTTP_SSE_REVISION) {
        return Ok(None);
    }
    let legacy = version.and_then(Revision::parse).filter(|revision| !revision.is_modern());
    legacy.map(Some).ok_or(McpError::UnsupportedRevision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_revision_is_negotiated() {
        for (version, is_http_sse, expected) in [
            (Some("2025-11-25"), false, Ok(Some(Revision::V2025_11_25))),
            (Some("2025-11-25"), true, Ok(Some(Revision::V2025_11_25))),
            (Some("2024-11-05"), true, Ok(None)),
            (Some("2024-11-05"), false, Err("mcp.revision")),
            (Some("2026-07-28"), false, Err("mcp.revision")),
            (Some("1.0"), false, Err("mcp.revision")),
            (None, true, Err("mcp.revision")),
        ] {
            let revision = negotiated_revision(version, is_http_sse).map_err(|error| error.code());
            assert_eq!(revision, expected, "{version:?} {is_http_sse}");
        }
    }
}
