//! The gateway in another program:
//! `cargo run -p portcullis-examples --example serve -- https://issuer.example`
//!
//! `http://127.0.0.1:3001/mcp` passes requests with a token of the issuer to the MCP server at
//! `http://127.0.0.1:8000/mcp`, until Ctrl-C. `curl -i -X POST http://127.0.0.1:3001/mcp` shows the
//! challenge.

use std::error::Error;

use portcullis_config::{
    Config, Diagnostic,
    file::{Issuer, Resource, Upstream},
    plan::Plan,
};
use portcullis_serve::{Server, Signals};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let issuer = std::env::args().nth(1).ok_or("usage: serve ISSUER")?;
    let plan = plan("127.0.0.1:3001", &issuer, "http://127.0.0.1:8000/mcp")?;
    Ok(Server::new(plan).serve(Signals::handle()?).await?)
}

/// Protects the MCP server at `upstream` for tokens of `issuer` with the scope `mcp:tools`.
/// Sessions end with the program.
pub(crate) fn plan(listen: &str, issuer: &str, upstream: &str) -> Result<Plan, Box<dyn Error>> {
    let mut resource = Resource::new("/mcp", Upstream::Http(upstream.to_owned()));
    resource.required_scopes = vec!["mcp:tools".to_owned()];
    let mut config = Config::new(format!("http://{listen}"));
    config.listen = listen.parse()?;
    config.state_dir = Some("off".into());
    config.issuer = vec![Issuer::new(issuer)];
    config.resource = vec![resource];
    Ok(Plan::new(&config).map_err(|errors| Diagnostic::joined(&errors))?)
}
