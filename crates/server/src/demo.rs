//! The MCP server of `portcullis demo` and of `upstream = "demo"`.

use std::sync::Arc;

use http::request::Parts;
use portcullis_guard::Caller;
use rmcp::{
    ServerHandler,
    handler::server::{common::Extension, router::tool::ToolRouter, wrapper::Parameters},
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The service behind the guard and the endpoint.
pub(crate) type DemoService = StreamableHttpService<Tools, LocalSessionManager>;

/// Creates the demo server. It does not check `Host` and `Origin`, because the guard does.
///
/// # Errors
/// Never here. A package without the feature `dev` has no demo server.
pub(crate) fn service() -> anyhow::Result<DemoService> {
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    Ok(StreamableHttpService::new(|| Ok(Tools::new()), Arc::new(LocalSessionManager::default()), config))
}

/// Three tools: two that compute, and one that shows the principal.
#[derive(Clone)]
pub(crate) struct Tools {
    tool_router: ToolRouter<Self>,
}

#[derive(Deserialize, JsonSchema)]
struct Operands {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[tool_router]
impl Tools {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Adds two numbers.")]
    fn add(&self, Parameters(Operands { a, b }): Parameters<Operands>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Multiplies two numbers.")]
    fn multiply(&self, Parameters(Operands { a, b }): Parameters<Operands>) -> String {
        (a * b).to_string()
    }

    #[tool(description = "Shows the principal that the guard attached to this request.")]
    fn whoami(&self, Extension(parts): Extension<Parts>) -> String {
        match parts.extensions.get::<Caller>().and_then(Caller::principal) {
            Some(principal) => json!({
                "issuer": principal.issuer().as_str(),
                "subject": principal.subject(),
                "client": principal.client(),
                "scopes": principal.scopes().iter().collect::<Vec<_>>(),
            })
            .to_string(),
            None => "anonymous: authorization is off".to_owned(),
        }
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {}
