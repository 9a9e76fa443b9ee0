//! [`McpSession`]: a session of an MCP client at a server with a broker.

use serde_json::json;

use super::BrokerServer;
use crate::{Connection, EventStream, HttpResponse, INITIALIZE, Request, call_message};

/// A session at an endpoint.
pub struct McpSession {
    endpoint: &'static str,
    id: String,
}

impl McpSession {
    /// Opens a session at `/mcp`.
    ///
    /// # Panics
    /// Panics if it is rejected.
    pub async fn open<P>(server: &BrokerServer<P>, token: &str) -> Self {
        Self::open_at(server, "/mcp", token).await
    }

    /// Opens a session at an endpoint.
    ///
    /// # Panics
    /// Panics if it is rejected.
    pub async fn open_at<P>(server: &BrokerServer<P>, endpoint: &'static str, token: &str) -> Self {
        let response = Self::initialize(server, endpoint, token).await;
        assert_eq!(response.status, 200, "{response:?}");
        let id = response.header("mcp-session-id").expect("a session");
        Self {
            endpoint,
            id: id.to_owned(),
        }
    }

    /// Sends `initialize`.
    pub async fn initialize<P>(
        server: &BrokerServer<P>,
        endpoint: &str,
        token: &str,
    ) -> HttpResponse {
        Request::post(endpoint, INITIALIZE)
            .bearer(token)
            .send(server.address())
            .await
    }

    /// Calls a tool.
    pub async fn call<P>(&self, server: &BrokerServer<P>, token: &str, tool: &str) -> HttpResponse {
        let call = call_message(2, "tools/call", &json!({ "name": tool, "arguments": {} }));
        Request::post(self.endpoint, call)
            .bearer(token)
            .session(&self.id)
            .send(server.address())
            .await
    }

    /// Calls a tool, which must succeed.
    ///
    /// # Panics
    /// Panics if it fails.
    pub async fn assert_usable<P>(&self, server: &BrokerServer<P>, token: &str) {
        let response = self.call(server, token, "add").await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.json()["result"]["name"], "add", "{response:?}");
    }

    /// Opens the event stream of the session.
    ///
    /// # Panics
    /// Panics if the response is not an event stream.
    pub async fn listen<P>(&self, server: &BrokerServer<P>, token: &str) -> EventStream {
        let mut connection = Connection::open(server.address()).await;
        let request = Request::listen(self.endpoint, token, &self.id);
        connection.write(&request.to_bytes()).await;
        let head = connection.head().await.expect("a response");
        assert_eq!(head.status, 200, "{head:?}");
        let mut stream = EventStream {
            connection,
            events: server.streams.take(),
        };
        stream.assert_open().await;
        stream
    }
}
