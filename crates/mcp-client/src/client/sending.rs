//! Sends messages in the current session.

use std::sync::atomic::Ordering;

use http::{HeaderValue, Method, header};
use portcullis_discovery::{FetchRequest, OpenResponse, UrlPolicy};
use portcullis_mcp::header as names;
use serde_json::{Value, json, value::to_raw_value};
use url::Url;

use crate::{
    client::McpClient,
    error::McpError,
    http_sse::SseConnection,
    outgoing::Outgoing,
    response::{self, Answer},
    session::Session,
    transport::BodyLimits,
};

/// A request that the server has accepted.
pub(crate) struct Posted {
    /// The session identifier in the response, if there is one.
    pub(crate) session_identifier: Option<HeaderValue>,
    pub(crate) answer: Answer,
}

impl McpClient {
    /// Creates a message of the client's revision: a request if there is an identifier, otherwise a
    /// notification. Fails with [`McpError::InvalidParams`] for parameters that cannot have the
    /// metadata of 2026-07-28.
    pub(crate) fn outgoing(
        &self,
        id: Option<u64>,
        method: &str,
        params: Option<Value>,
    ) -> Result<Outgoing, McpError> {
        if self.settings.revision.is_modern() {
            let called = params
                .as_ref()
                .filter(|_| method == "tools/call")
                .and_then(|call| to_raw_value(call).ok());
            let mirrored = called
                .map(|call| self.tools.of_call(&call))
                .unwrap_or_default();
            let mut message = Outgoing::modern(
                id,
                method,
                params,
                self.settings.revision,
                self.client_info(),
                self.capabilities(),
            )?;
            message.add(mirrored);
            return Ok(message);
        }
        Ok(match id {
            Some(id) => Outgoing::request(id, method, params),
            None => Outgoing::notification(method, params),
        })
    }

    /// Sends a request, and stores the session identifier of the response. Fails when it cannot be
    /// sent, and when the server rejects it. The messages of the response are not read yet.
    pub(crate) async fn post(&self, message: &Outgoing) -> Result<Posted, McpError> {
        if let Some(connection) = self.connection() {
            let answer = self.post_over_sse(message, &connection).await?;
            return Ok(Posted {
                session_identifier: None,
                answer,
            });
        }
        let generation = self.session.generation();
        let response = self
            .endpoint
            .send(|| self.post_request(message, self.endpoint.url()))
            .await?;
        // Another call can have replaced the session meanwhile. It is then unknown in which one the
        // request was sent.
        let generation = generation.filter(|before| self.session.generation() == Some(*before));
        self.update_identifier(generation, &response);
        let session_identifier = response.headers.get(&self.settings.session_header).cloned();
        let answer = Answer::read(response, message.id(), &self.limits())
            .await?
            .in_session(generation);
        Ok(Posted {
            session_identifier,
            answer,
        })
    }

    /// Sends a request to a server of 2024-11-05, which responds on the open stream. Calls wait for
    /// each other. Fails as [`post`](Self::post) does.
    pub(crate) async fn post_over_sse(
        &self,
        message: &Outgoing,
        connection: &SseConnection,
    ) -> Result<Answer, McpError> {
        let stream = connection.stream().await;
        let response = self
            .endpoint
            .send(|| self.post_request(message, &connection.message_url))
            .await?;
        response::success(response, &self.limits()).await?;
        Ok(Answer::on_session(
            stream,
            message.id(),
            self.endpoint.sent().clone(),
        ))
    }

    /// Sends a notification or a response, and stores the session identifier of the HTTP response.
    /// Fails when it cannot be sent, and when the server rejects it.
    pub(crate) async fn send(&self, message: &Outgoing) -> Result<(), McpError> {
        let connection = self.connection();
        let url = connection
            .as_ref()
            .map_or(self.endpoint.url(), |connection| &connection.message_url);
        let generation = self.session.generation();
        let response = self
            .endpoint
            .send(|| self.post_request(message, url))
            .await?;
        self.update_identifier(generation, &response);
        response::success(response, &self.limits()).await.map(drop)
    }

    /// The request that opens or resumes an event stream.
    pub(crate) fn get_stream(&self) -> FetchRequest {
        FetchRequest::new(
            Method::GET,
            self.endpoint.url().clone(),
            UrlPolicy::StartOrigin,
        )
        .header(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        )
    }

    /// Adds the headers of a session to a request.
    pub(crate) fn in_session(&self, mut request: FetchRequest, session: &Session) -> FetchRequest {
        if let Some(revision) = session.revision {
            request = request.header(
                names::PROTOCOL_VERSION,
                HeaderValue::from_static(revision.as_str()),
            );
        }
        match &session.identifier {
            Some(identifier) => {
                request.header(self.settings.session_header.clone(), identifier.clone())
            }
            None => request,
        }
    }

    /// The current session. Fails with [`McpError::UnavailableInRevision`] with 2026-07-28,
    /// [`McpError::NotInitialized`] without a handshake.
    pub(crate) fn legacy_session(&self) -> Result<Session, McpError> {
        if self.settings.revision.is_modern() {
            return Err(McpError::UnavailableInRevision);
        }
        self.session.current().ok_or(McpError::NotInitialized)
    }

    /// A new identifier for a request.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The name and version of this client.
    pub(crate) fn client_info(&self) -> Value {
        json!({ "name": self.settings.client_name, "version": self.settings.client_version })
    }

    /// The capabilities of the request handler. None without a handler.
    pub(crate) fn capabilities(&self) -> Value {
        self.request_handler
            .as_ref()
            .map_or_else(|| json!({}), |handler| handler.capabilities())
    }

    /// The limits for reading a response.
    pub(crate) fn limits(&self) -> BodyLimits {
        BodyLimits {
            timeout: self.settings.timeout,
            max_message: self.settings.max_message,
        }
    }

    /// The connection of a session over HTTP with SSE.
    fn connection(&self) -> Option<SseConnection> {
        self.session.current()?.connection
    }

    fn post_request(&self, message: &Outgoing, url: &Url) -> FetchRequest {
        let mut request =
            FetchRequest::post_json(url.clone(), message.body(), UrlPolicy::StartOrigin).header(
                header::ACCEPT,
                HeaderValue::from_static("application/json, text/event-stream"),
            );
        request.headers.extend(message.headers());
        match self.session.current() {
            Some(session) => self.in_session(request, &session),
            None => request,
        }
    }

    /// Replaces the session identifier if the response has another one and the session is still
    /// that of the request.
    fn update_identifier(&self, generation: Option<u64>, response: &OpenResponse) {
        if let (Some(generation), Some(identifier)) = (
            generation,
            response.headers.get(&self.settings.session_header),
        ) {
            self.session.set_identifier(generation, identifier);
        }
    }
}
