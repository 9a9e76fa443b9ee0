//! [`McpClient`]: MCP calls over Streamable HTTP.

mod call;
mod handshake;
mod sending;
mod server_requests;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
};

use http::{Method, StatusCode};
use portcullis_client::{Authorizer, ResourceToken, StartUrl, TokenManager};
use portcullis_discovery::{Fetch, FetchRequest, UrlPolicy};
use serde_json::Value;

use crate::{
    endpoint::ProtectedEndpoint, error::McpError, message_stream::MessageStream, response,
    server_request_handler::ServerRequestHandler, session::SessionState, settings::McpSettings,
    transport::ToolHeaders,
};

/// A client of one MCP endpoint over Streamable HTTP. It obtains a token when the endpoint requires
/// one.
///
/// The token is sent only to the endpoint's origin, in the `Authorization` header of every request,
/// and not to redirect targets outside the resource. When the endpoint rejects the token, the
/// request is authorized once more; a second rejection is an error. When the endpoint requires more
/// scopes, they are requested, twice at most. Concurrent requests share one authorization. The
/// [`TokenManager`] does all of that.
///
/// # Examples
/// ```
/// # use portcullis_mcp_client::{McpClient, McpError};
/// # use serde_json::json;
/// async fn add(client: &McpClient) -> Result<(), McpError> {
///     client.initialize().await?;
///     let result = client.call("tools/call", Some(json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }))).await?;
///     println!("{result}");
///     client.delete().await
/// }
/// ```
pub struct McpClient {
    endpoint: ProtectedEndpoint,
    settings: McpSettings,
    session: SessionState,
    /// The identifier of the next request.
    next_id: AtomicU64,
    /// The tool arguments that are also sent as headers.
    tools: ToolHeaders,
    request_handler: Option<Arc<dyn ServerRequestHandler>>,
}

impl McpClient {
    /// Creates a client without a token and without a session. Without an authorizer, a 401 is an
    /// error.
    pub fn new(
        start: StartUrl,
        fetch: Arc<dyn Fetch>,
        authorizer: Option<Arc<Authorizer>>,
        settings: McpSettings,
    ) -> Self {
        let token_manager = match authorizer {
            Some(authorizer) => TokenManager::new(start, authorizer),
            None => TokenManager::unauthenticated(start),
        };
        Self::with_token_manager(Arc::new(token_manager), fetch, settings)
    }

    /// Creates a client that uses a shared token manager.
    pub fn with_token_manager(
        token_manager: Arc<TokenManager>,
        fetch: Arc<dyn Fetch>,
        settings: McpSettings,
    ) -> Self {
        let endpoint = ProtectedEndpoint::new(token_manager, fetch, settings.timeout);
        Self {
            endpoint,
            settings,
            session: SessionState::default(),
            next_id: AtomicU64::new(1),
            tools: ToolHeaders::default(),
            request_handler: None,
        }
    }

    /// Declares the capabilities of `handler`, which then answers the server's requests: during a
    /// call, and on a stream that [`answer_stream`](Self::answer_stream) reads. See
    /// [`ServerRequestHandler`] for an example.
    #[must_use]
    pub fn with_request_handler(self, handler: Arc<dyn ServerRequestHandler>) -> Self {
        Self {
            request_handler: Some(handler),
            ..self
        }
    }

    /// Calls a method and returns a stream of all messages of the response, including the result.
    /// It is for responses that do not end, such as that of `subscriptions/listen`; dropping the
    /// stream cancels the request.
    ///
    /// # Errors
    /// As [`call`](Self::call), except that an error response in the stream is returned like any
    /// message. [`McpError::UnavailableInRevision`] over HTTP with SSE, where all messages share a
    /// stream.
    ///
    /// # Examples
    /// ```
    /// # use portcullis_mcp_client::{McpClient, McpError};
    /// # use serde_json::json;
    /// async fn follow(client: &McpClient) -> Result<(), McpError> {
    ///     let params = json!({ "notifications": { "toolsListChanged": true } });
    ///     let mut changes = client.call_stream("subscriptions/listen", Some(params)).await?;
    ///     while let Some(message) = changes.next().await? {
    ///         println!("{message}");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn call_stream(
        &self,
        method: &str,
        params: Option<Value>,
    ) -> Result<MessageStream, McpError> {
        if self
            .session
            .current()
            .is_some_and(|session| session.connection.is_some())
        {
            return Err(McpError::UnavailableInRevision);
        }
        let message = self.outgoing(Some(self.next_id()), method, params)?;
        self.post(&message)
            .await?
            .answer
            .into_messages()
            .ok_or(McpError::UnavailableInRevision)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When the request fails or the server does not accept it.
    pub async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), McpError> {
        let message = self.outgoing(None, method, params)?;
        self.send(&message).await
    }

    /// Opens the stream for a legacy server's own messages.
    ///
    /// # Errors
    /// [`McpError::UnavailableInRevision`] with 2026-07-28, and over HTTP with SSE; otherwise when
    /// the request fails or the response is not a stream.
    pub async fn open_stream(&self) -> Result<MessageStream, McpError> {
        let session = self.legacy_session()?;
        if session.connection.is_some() {
            return Err(McpError::UnavailableInRevision);
        }
        let answer = self
            .endpoint
            .send(|| self.in_session(self.get_stream(), &session))
            .await?;
        response::event_stream(answer, &self.limits()).await
    }

    /// Ends the legacy session on both sides. A server that does not let clients end sessions (405)
    /// is not an error. If the server has no sessions, nothing is sent.
    ///
    /// # Errors
    /// [`McpError::UnavailableInRevision`] with 2026-07-28; otherwise when the request fails. The
    /// session is forgotten in both cases.
    pub async fn delete(&self) -> Result<(), McpError> {
        let session = self.legacy_session()?;
        self.session.clear();
        if session.identifier.is_none() {
            return Ok(());
        }
        let request = || {
            let request = FetchRequest::new(
                Method::DELETE,
                self.endpoint.url().clone(),
                UrlPolicy::StartOrigin,
            );
            self.in_session(request, &session)
        };
        let answer = self.endpoint.send(request).await?;
        if answer.status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        response::success(answer, &self.limits()).await.map(drop)
    }

    /// Returns the current token, if there is one.
    pub fn token(&self) -> Option<Arc<ResourceToken>> {
        self.endpoint.token_manager().current()
    }

    /// Sets the current token, for example the [`token`](Self::token) of another client of the same
    /// endpoint. A token that cannot be used for the endpoint ([`ResourceToken::is_for`]) is
    /// ignored.
    pub fn set_token(&self, token: Arc<ResourceToken>) {
        self.endpoint.token_manager().set_current(token);
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
