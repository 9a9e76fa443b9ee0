//! [`ServerRequestHandler`]: answers the requests of a server.

use portcullis_discovery::BoxFuture;
use serde_json::Value;

/// Answers the server's requests during a call: for the user's input (`elicitation/create`), for a
/// model's response (`sampling/createMessage`), or for the roots (`roots/list`).
///
/// # Examples
/// A handler that names the roots, during calls and on the server's own stream:
/// ```
/// # use std::sync::Arc;
/// # use portcullis_mcp_client::{McpClient, McpError, ServerRequestHandler};
/// # use portcullis_discovery::BoxFuture;
/// # use serde_json::{Value, json};
/// struct Roots;
///
/// impl ServerRequestHandler for Roots {
///     fn capabilities(&self) -> Value {
///         json!({ "roots": {} })
///     }
///
///     fn answer<'a>(&'a self, method: &'a str, _: &'a Value) -> BoxFuture<'a, Option<Value>> {
///         let roots = || json!({ "roots": [{ "uri": "file:///home/alice/project" }] });
///         Box::pin(async move { (method == "roots/list").then(roots) })
///     }
/// }
///
/// async fn listen(client: McpClient) -> Result<(), McpError> {
///     let client = client.with_request_handler(Arc::new(Roots));
///     client.initialize().await?;
///     let stream = client.open_stream().await?;
///     client.answer_stream(stream, &mut |message| println!("{message}")).await
/// }
/// ```
pub trait ServerRequestHandler: Send + Sync + 'static {
    /// The capabilities to declare: those whose requests are answered.
    fn capabilities(&self) -> Value;

    /// The result of a request. None if the method is not supported.
    fn answer<'a>(&'a self, method: &'a str, params: &'a Value) -> BoxFuture<'a, Option<Value>>;
}
