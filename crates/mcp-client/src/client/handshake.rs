//! The handshake of the legacy versions.

use http::HeaderValue;
use portcullis_mcp::Revision;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{McpClient, sending::Posted};
use crate::{
    error::McpError,
    http_sse::SseConnection,
    outgoing::Outgoing,
    response::Answer,
    transport::{json, suggests_http_sse},
};

/// The revision whose transport is HTTP with SSE.
const HTTP_SSE_REVISION: &str = "2024-11-05";
/// The maximum length of a protocol version, in bytes of JSON text.
const MAX_VERSION: usize = 256;

impl McpClient {
    /// Performs the handshake of the legacy versions (`initialize`, then
    /// `notifications/initialized`) and returns its result. 2026-07-28 has no handshake: nothing is
    /// sent, and the result is `None`. If the server rejects the handshake as servers of 2024-11-05
    /// do, HTTP with SSE is used.
    ///
    /// A value can take 80 times the memory of its text; [`open`](Self::open) does not parse the
    /// result.
    ///
    /// # Errors
    /// As [`open`](Self::open). [`McpError::InvalidResponse`] for a result that a [`Value`] cannot
    /// represent.
    pub async fn initialize(&self) -> Result<Option<Value>, McpError> {
        let Some(result) = self.handshake().await? else {
            return Ok(None);
        };
        serde_json::from_str(result.get())
            .map(Some)
            .map_err(|_| McpError::InvalidResponse)
    }

    /// As [`initialize`](Self::initialize), without the result.
    ///
    /// # Errors
    /// When a request fails, or the server's version is not a known legacy version. 2024-11-05 is
    /// accepted over HTTP with SSE only.
    pub async fn open(&self) -> Result<(), McpError> {
        self.handshake().await.map(drop)
    }

    async fn handshake(&self) -> Result<Option<Box<RawValue>>, McpError> {
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
            Ok(Posted {
                session_identifier,
                answer,
            }) => Opened {
                session_identifier,
                answer,
                connection: None,
            },
            Err(error)
                if error
                    .rejection()
                    .is_some_and(|(status, code)| suggests_http_sse(status, code)) =>
            {
                self.open_over_sse(&message, error).await?
            }
            Err(error) => return Err(error),
        };
        let Opened {
            session_identifier,
            answer,
            connection,
        } = opened;
        let result = self.result(answer, &mut |_| ()).await?;
        let version = json::object::<InitializeResult<'_>>(&result);
        let version =
            version.and_then(|result| json::string(result.protocol_version?, MAX_VERSION));
        let revision = negotiated_revision(version.as_deref(), connection.is_some())?;
        self.session.open(session_identifier, revision, connection);
        self.notify("notifications/initialized", None).await?;
        Ok(Some(result))
    }

    /// Sends the handshake over HTTP with SSE. If the server does not support that either, the
    /// error is `rejection`, the server's first response, which says more.
    async fn open_over_sse(
        &self,
        message: &Outgoing,
        rejection: McpError,
    ) -> Result<Opened, McpError> {
        let connection = match SseConnection::open(&self.endpoint, self.settings.max_message).await
        {
            Err(McpError::NoSseEndpoint) => return Err(rejection),
            connection => connection?,
        };
        let answer = self.post_over_sse(message, &connection).await?;
        Ok(Opened {
            session_identifier: None,
            answer,
            connection: Some(connection),
        })
    }
}

/// The member of the result of `initialize` that is used.
#[derive(Deserialize)]
struct InitializeResult<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    protocol_version: Option<&'a RawValue>,
}

/// A handshake whose response is not read yet.
struct Opened {
    session_identifier: Option<HeaderValue>,
    answer: Answer,
    /// The connection, if the server uses HTTP with SSE.
    connection: Option<SseConnection>,
}

/// Returns the revision that the server has selected: a legacy one, or `None` for 2024-11-05. Fails
/// with [`McpError::UnsupportedRevision`] for other versions, and for 2024-11-05 over Streamable
/// HTTP, which it does not have.
fn negotiated_revision(
    version: Option<&str>,
    is_http_sse: bool,
) -> Result<Option<Revision>, McpError> {
    if is_http_sse && version == Some(HTTP_SSE_REVISION) {
        return Ok(None);
    }
    let legacy = version
        .and_then(Revision::parse)
        .filter(|revision| !revision.is_modern());
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
