//! [`McpClient`]: MCP calls over Streamable HTTP.

mod call;
mod endpoint;
mod http_sse;
mod message_stream;
mod outgoing;
mod server_request_handler;
mod server_requests;
mod session;
mod settings;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portcullis_client::{Authorizer, ResourceToken, StartUrl, TokenManager};
use portcullis_discovery::{Fetch, FetchRequest, OpenResponse, UrlPolicy};
use portcullis_mcp::{Revision, header as names};
use serde_json::{Value, json};
use url::Url;

use self::{
    endpoint::ProtectedEndpoint,
    http_sse::SseConnection,
    message_stream::Answer,
    outgoing::Outgoing,
    session::{Session, SessionState},
};
pub use self::{message_stream::MessageStream, server_request_handler::ServerRequestHandler, settings::McpSettings};
use crate::{error::McpError, http_sse::suggests_http_sse, response::BodyLimits, tool_headers::ToolHeaders};

/// A client of one MCP endpoint over Streamable HTTP. It obtains a token when the endpoint requires one.
///
/// The token is sent only to the endpoint's origin, in the `Authorization` header of every request, and not to redirect
/// targets outside the resource. When the endpoint rejects the token, the request is authorized once more; a second
/// rejection is an error. When the endpoint requires more scopes, they are requested, twice at most. Concurrent
/// requests share one authorization. The [`TokenManager`] does all of that.
pub struct McpClient {
    endpoint: ProtectedEndpoint,
    settings: McpSettings,
    session: SessionState,
    next_id: AtomicU64,
    tools: ToolHeaders,
    request_handler: Option<Arc<dyn ServerRequestHandler>>,
}

/// The revision whose transport is HTTP with SSE.
const HTTP_SSE_REVISION: &str = "2024-11-05";

impl McpClient {
    /// Creates a client without a token and without a session. Without an authorizer, a 401 is an error.
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
    pub fn with_token_manager(token_manager: Arc<TokenManager>, fetch: Arc<dyn Fetch>, settings: McpSettings) -> Self {
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

    /// Declares the capabilities of `handler`, which then answers the server's requests: during a call, and on a stream
    /// that [`answer_stream`](Self::answer_stream) reads. See [`ServerRequestHandler`] for an example.
    #[must_use]
    pub fn with_request_handler(self, handler: Arc<dyn ServerRequestHandler>) -> Self {
        Self { request_handler: Some(handler), ..self }
    }

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
        let (identifier, answer, connection) = match self.post(&message).await {
            Ok((identifier, answer)) => (identifier, answer, None),
            Err(error) if error.rejection().is_some_and(|(status, code)| suggests_http_sse(status, code)) => {
                let connection = SseConnection::open(&self.endpoint, self.settings.max_message).await;
                // If the server does not support this transport either, its first error says more.
                let connection = connection.map_err(|other| match other {
                    McpError::NoSseEndpoint => error,
                    other => other,
                })?;
                (None, self.post_over_sse(&message, &connection).await?, Some(connection))
            }
            Err(error) => return Err(error),
        };
        let result = self.result(answer, &mut |_| ()).await?;
        let revision = match result.get("protocolVersion").and_then(Value::as_str) {
            Some(HTTP_SSE_REVISION) if connection.is_some() => None,
            other => {
                let legacy = other.and_then(Revision::parse).filter(|revision| !revision.is_modern());
                Some(legacy.ok_or(McpError::UnsupportedRevision)?)
            }
        };
        self.session.set(Session { identifier, revision, connection });
        self.notify("notifications/initialized", None).await?;
        Ok(Some(result))
    }

    /// Calls a method and returns a stream of all messages of the response, including the result. It is for responses
    /// that do not end, such as that of `subscriptions/listen`; dropping the stream cancels the request.
    ///
    /// # Errors
    /// As [`call`](Self::call), except that an error response in the stream is returned like any message.
    /// [`McpError::UnavailableInRevision`] over HTTP with SSE, where all messages share a stream.
    ///
    /// # Examples
    /// ```
    /// # use portcullis_bridge::{McpClient, McpError};
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
    pub async fn call_stream(&self, method: &str, params: Option<Value>) -> Result<MessageStream, McpError> {
        let message = self.outgoing(Some(self.next_id()), method, params)?;
        self.post(&message).await?.1.into_messages().ok_or(McpError::UnavailableInRevision)
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
    /// [`McpError::UnavailableInRevision`] with 2026-07-28, and over HTTP with SSE; otherwise when the request fails or
    /// the response is not a stream.
    pub async fn open_stream(&self) -> Result<MessageStream, McpError> {
        let session = self.legacy_session()?;
        if session.connection.is_some() {
            return Err(McpError::UnavailableInRevision);
        }
        let request = || {
            let request = FetchRequest::new(Method::GET, self.endpoint.url().clone(), UrlPolicy::StartOrigin)
                .header(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
            self.with_session(request, &session)
        };
        let answer = self.endpoint.send(request).await?;
        message_stream::stream(answer, &self.limits()).await
    }

    /// Ends the legacy session on both sides. A server that does not let clients end sessions (405) is not an error. If
    /// the server has no sessions, nothing is sent.
    ///
    /// # Errors
    /// [`McpError::UnavailableInRevision`] with 2026-07-28; otherwise when the request fails. The session is forgotten
    /// in both cases.
    pub async fn delete(&self) -> Result<(), McpError> {
        let session = self.legacy_session()?;
        self.session.clear();
        if session.identifier.is_none() {
            return Ok(());
        }
        let request = || {
            let request = FetchRequest::new(Method::DELETE, self.endpoint.url().clone(), UrlPolicy::StartOrigin);
            self.with_session(request, &session)
        };
        let answer = self.endpoint.send(request).await?;
        if answer.status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        message_stream::accepted(answer, &self.limits()).await
    }

    /// Returns the current token, if there is one.
    pub fn token(&self) -> Option<Arc<ResourceToken>> {
        self.endpoint.token_manager().current()
    }

    /// Sets the current token, for example the [`token`](Self::token) of another client of the same endpoint. A token
    /// that cannot be used for the endpoint ([`ResourceToken::is_for`]) is ignored.
    pub fn set_token(&self, token: Arc<ResourceToken>) {
        self.endpoint.token_manager().set_current(token);
    }

    fn outgoing(&self, id: Option<u64>, method: &str, params: Option<Value>) -> Result<Outgoing, McpError> {
        if self.settings.revision.is_modern() {
            let mirrored = if method == "tools/call" { self.tools.of_call(params.as_ref()) } else { HeaderMap::new() };
            let mut message =
                Outgoing::modern(id, method, params, self.settings.revision, self.client_info(), self.capabilities())?;
            message.add(mirrored);
            return Ok(message);
        }
        Ok(match id {
            Some(id) => Outgoing::request(id, method, params),
            None => Outgoing::notification(method, params),
        })
    }

    /// Posts a message. Stores and returns the session identifier of the response.
    async fn post(&self, message: &Outgoing) -> Result<(Option<HeaderValue>, Answer), McpError> {
        if let Some(connection) = self.connection() {
            return Ok((None, self.post_over_sse(message, &connection).await?));
        }
        let answer = self.endpoint.send(|| self.post_request(message, self.endpoint.url())).await?;
        let identifier = answer.headers.get(&self.settings.session_header).cloned();
        self.keep_session(&answer);
        Ok((identifier, message_stream::of(answer, message.id(), &self.limits()).await?))
    }

    /// Posts a message to a server of 2024-11-05, which responds on the open stream. Calls wait for each other.
    async fn post_over_sse(&self, message: &Outgoing, connection: &SseConnection) -> Result<Answer, McpError> {
        let stream = connection.stream().await;
        let url = &connection.message_url;
        let answer = self.endpoint.send_same_origin(|| self.post_request(message, url)).await?;
        message_stream::accepted(answer, &self.limits()).await?;
        Ok(Answer::on_session(stream, message.id()))
    }

    /// Returns the connection of a session over HTTP with SSE.
    fn connection(&self) -> Option<SseConnection> {
        self.session.current()?.connection
    }

    fn post_request(&self, message: &Outgoing, url: &Url) -> FetchRequest {
        let mut request = FetchRequest::post_json(url.clone(), message.body(), UrlPolicy::StartOrigin)
            .header(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        request.headers.extend(message.headers());
        match self.session.current() {
            Some(session) => self.with_session(request, &session),
            None => request,
        }
    }

    fn with_session(&self, mut request: FetchRequest, session: &Session) -> FetchRequest {
        if let Some(revision) = session.revision {
            request = request.header(names::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        match &session.identifier {
            Some(identifier) => request.header(self.settings.session_header.clone(), identifier.clone()),
            None => request,
        }
    }

    /// Replaces the session identifier if the response has another one.
    fn keep_session(&self, answer: &OpenResponse) {
        if let Some(identifier) = answer.headers.get(&self.settings.session_header) {
            self.session.set_identifier(identifier);
        }
    }

    fn legacy_session(&self) -> Result<Session, McpError> {
        if self.settings.revision.is_modern() {
            return Err(McpError::UnavailableInRevision);
        }
        self.session.current().ok_or(McpError::NotInitialized)
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn client_info(&self) -> Value {
        json!({ "name": self.settings.client_name, "version": self.settings.client_version })
    }

    fn capabilities(&self) -> Value {
        self.request_handler.as_ref().map_or_else(|| json!({}), |handler| handler.capabilities())
    }

    fn limits(&self) -> BodyLimits {
        BodyLimits { timeout: self.settings.timeout, max_message: self.settings.max_message }
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("settings", &self.settings).finish_non_exhaustive()
    }
}
