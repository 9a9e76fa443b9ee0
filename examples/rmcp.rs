//! rmcp's HTTP service behind guard and endpoint:
//! `cargo run -p portcullis-examples --example rmcp -- ISSUER`

use std::{error::Error, sync::Arc};

use axum::{Router, http::request::Parts};
use portcullis_endpoint::{Endpoint, HttpService};
use portcullis_guard::{Caller, Guard, Verifier};
use rmcp::transport::streamable_http_server::{
    StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{handler::server::common::Extension, tool, tool_router};
use tokio::net::TcpListener;
use tower::Layer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = app(
        "http://127.0.0.1:3002/mcp",
        &std::env::args().nth(1).ok_or("usage: rmcp ISSUER")?,
    )?;
    Ok(axum::serve(TcpListener::bind("127.0.0.1:3002").await?, app).await?)
}

/// The MCP server, known as `resource`, for tokens of `issuer`.
pub(crate) fn app(resource: &str, issuer: &str) -> Result<Router, Box<dyn Error>> {
    let verifier = Verifier::builder(resource).issuer(issuer).build()?;
    let (guard, endpoint) = Endpoint::builder(Guard::builder(verifier)).build()?;
    let mcp = StreamableHttpService::new(
        || Ok(Tools),
        Arc::new(LocalSessionManager::default()),
        Default::default(),
    );
    Ok(Router::new()
        .route_service("/mcp", endpoint.layer(HttpService::new(mcp)))
        .layer(guard))
}

struct Tools;

#[tool_router(server_handler)]
impl Tools {
    #[tool(
        description = "Who the guard says you are",
        annotations(read_only_hint = true)
    )]
    fn whoami(&self, Extension(parts): Extension<Parts>) -> String {
        parts
            .extensions
            .get::<Caller>()
            .and_then(Caller::subject)
            .unwrap_or("unknown")
            .into()
    }
}
