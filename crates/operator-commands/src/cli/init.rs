//! The command line of `portcullis init`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

/// What `init --help` shows after the options.
pub(crate) const MORE: &str = "\
Examples:
  portcullis init                                in a terminal; it asks for what is missing
  portcullis init --base-url https://mcp.example.com --issuer https://auth.example.com/realms/prod \\
                  --upstream http://127.0.0.1:8000/mcp";

#[derive(Args)]
pub struct Init {
    /// The configuration file to write.
    #[arg(long, short, value_name = "FILE", default_value = "portcullis.toml")]
    pub(crate) config: PathBuf,
    /// The scheme, host and port that clients use: https, or http on loopback.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Where this server listens, if a proxy in front of it has the address of the base URL.
    /// Default: the address of an http base URL; for https, a free port on loopback.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// The address of a proxy in front of this server, or a network such as 10.0.0.0/8; may be
    /// repeated. Limits and logs then have the address of the client, which the proxy reports.
    #[arg(long = "trusted-proxy", value_name = "ADDRESS")]
    pub(crate) trusted_proxies: Vec<String>,
    /// The URL of the MCP server to protect, with its path.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// The path that clients use. Default without a terminal: the path of the upstream, or /mcp if
    /// it has none.
    #[arg(long, value_name = "PATH")]
    pub(crate) endpoint: Option<String>,
    /// A scope that every token must have; may be repeated. Default without a terminal: mcp:tools.
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// The authorization server: its issuer, with or without the slash at the end, or the URL of
    /// its metadata. The exact issuer is taken from the metadata.
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,
    /// Make no requests and test nothing. The issuer must then be exact.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Write the file without confirmation even if there are problems, and replace an existing
    /// file. A backup of it is kept.
    #[arg(long)]
    pub(crate) force: bool,
}
