//! The demonstration server of the TypeScript SDK.

use std::process::Command;

use portcullis_scenarios::{free_address, npm_install};
use url::Url;
use xtask::workspace;

use super::{
    Environment,
    site::{Site, Start},
};
use crate::program::Program;

/// The folder with the pinned version.
const PACKAGE: &str = "tests/idp/typescript";
const SCRIPT: &str =
    "node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js";

/// Starts the authorization server and the resource, which accepts only tokens for itself.
pub(super) async fn start(environment: &Environment<'_>) -> anyhow::Result<Start> {
    let folder = environment.target.join("sign-in/typescript");
    if let Err(why) = npm_install(&folder, &workspace::root().join(PACKAGE)).await {
        return Ok(Start::Missing(format!("{why:#}")));
    }
    let port = free_address()?.port().to_string();
    let authorization_port = free_address()?.port().to_string();
    let mut node = Command::new("node");
    node.arg(folder.join(SCRIPT))
        .args(["--oauth", "--oauth-strict"]);
    node.env("MCP_PORT", &port)
        .env("MCP_AUTH_PORT", &authorization_port);
    let mut server = Program::start("server", &mut node, environment.folder)?;
    for announcement in [
        "Authorization Server listening",
        "Streamable HTTP Server listening",
    ] {
        server
            .find_line(|line| line.contains(announcement).then_some(()))
            .await?;
    }
    let url = Url::parse(&format!("http://localhost:{port}/mcp"))?;
    Ok(Start::ready(Site::new(url).keeping(server)))
}
