//! rmcp's own HTTP service behind guard and endpoint: `cargo run -p portcullis-examples --example rmcp -- ISSUER`

use std::{error::Error, sync::Arc};

use axum::{Router, http::request::Parts};
use portcullis_discovery::HttpFetch;
use portcullis_endpoint::{EndpointLayer, EndpointSettings, Plain};
use portcullis_guard::{Authentication, Caller, GuardLayer, GuardSettings, ProtectedResource};
use portcullis_metadata::{Issuer, ProtectedResourceMetadata, ResourceUri, SystemClock};
use portcullis_session::{SessionKey, SessionSettings, SessionStore};
use portcullis_verifier::{IssuerSettings, TrustedIssuer, Verifier, VerifierSettings};
use rmcp::transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager};
use rmcp::{handler::server::common::Extension, tool, tool_router};
use tokio::{net::TcpListener, runtime::Handle};
use tower::Layer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = app("http://127.0.0.1:3002/mcp", &std::env::args().nth(1).ok_or("usage: rmcp ISSUER")?)?;
    Ok(axum::serve(TcpListener::bind("127.0.0.1:3002").await?, app).await?)
}

/// The MCP server, known as `resource`, for tokens of `issuer`.
pub(crate) fn app(resource: &str, issuer: &str) -> Result<Router, Box<dyn Error>> {
    let (resource, issuer) = (ResourceUri::parse(resource)?, Issuer::parse(issuer)?);
    let (fetch, clock) = (Arc::new(HttpFetch::new(Default::default())?), Arc::new(SystemClock::new()));
    let trusted = TrustedIssuer::new(IssuerSettings::new(issuer.clone()), fetch, clock.clone(), Handle::current())?;
    let verifier = Verifier::new(VerifierSettings::new(resource.clone()), vec![trusted], clock.clone())?;
    let metadata = ProtectedResourceMetadata::new(resource, vec![issuer]);
    let mut settings = GuardSettings::new(metadata, Authentication::Required(verifier))?;
    settings.cors = EndpointSettings::cors(&"mcp-session-id".parse()?);
    let resource = ProtectedResource::new(settings)?;
    let sessions = SessionStore::new(SessionSettings::new(SessionKey::random()?), clock, Arc::new(()));
    let endpoint = EndpointLayer::new(EndpointSettings::new(Arc::clone(&resource), sessions))?;
    let mcp = StreamableHttpService::new(|| Ok(Tools), Arc::new(LocalSessionManager::default()), Default::default());
    Ok(Router::new().route_service("/mcp", endpoint.layer(Plain::new(mcp))).layer(GuardLayer::new(resource)))
}

struct Tools;

#[tool_router(server_handler)]
impl Tools {
    #[tool(description = "Who the guard says you are")]
    fn whoami(&self, Extension(parts): Extension<Parts>) -> String {
        parts.extensions.get::<Caller>().and_then(|caller| caller.principal()?.subject()).unwrap_or("nobody").into()
    }
}
