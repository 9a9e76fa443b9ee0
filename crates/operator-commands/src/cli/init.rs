//! The command line of `portcullis init`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use portcullis_identity_provider::ProviderKind;

/// What `init --help` shows after the options.
pub(crate) const MORE: &str = "\
Examples:
  portcullis init                                in a terminal; it asks for what is missing
  portcullis init --base-url https://mcp.example.com --issuer https://auth.example.com/realms/prod \\
                  --upstream http://127.0.0.1:8000/mcp
  portcullis init --base-url https://mcp.example.com --upstream http://127.0.0.1:8000/mcp \\
                  --broker-kind google --broker-client-id ID --broker-allow hd=example.com";

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
    /// repeated. Limits and logs then have the address of the client, which the proxy reports. In a
    /// terminal, this is a question for https.
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
    /// Let this server issue the tokens, and sign users in at the issuer: for providers at which
    /// MCP clients cannot register. In a terminal, this is a question for such an issuer.
    #[arg(long)]
    pub(crate) broker: bool,
    /// The kind of that provider, if its issuer does not show it. No issuer is needed for google
    /// and github. Implies --broker.
    #[arg(long, value_name = "KIND", value_parser = provider_kind())]
    pub(crate) broker_kind: Option<ProviderKind>,
    /// The identifier of your application at the provider.
    #[arg(long, value_name = "ID")]
    pub(crate) broker_client_id: Option<String>,
    /// The environment variable that will have the secret of the application. Default: the kind and
    /// `_CLIENT_SECRET`, such as GOOGLE_CLIENT_SECRET.
    #[arg(long, value_name = "NAME")]
    pub(crate) broker_secret_env: Option<String>,
    /// Who may sign in: a claim with its accepted values, such as hd=example.com or id=1,2; may be
    /// repeated, and then all are required. Required for google and github.
    #[arg(long, value_name = "CLAIM=VALUE")]
    pub(crate) broker_allow: Vec<String>,
    /// Make no requests and test nothing. The issuer must then be exact.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Write the file without confirmation even if there are problems, and replace an existing
    /// file. A backup of it is kept.
    #[arg(long)]
    pub(crate) force: bool,
}

impl Init {
    /// Whether the options ask for a broker.
    pub(crate) fn wants_broker(&self) -> bool {
        self.broker || self.broker_kind.is_some()
    }

    /// The kind of provider, if it is given without an issuer and needs none.
    pub(crate) fn broker_kind_without_issuer(&self) -> Option<ProviderKind> {
        let needs_none = |kind: &ProviderKind| {
            self.issuer.is_none() && matches!(kind, ProviderKind::Google | ProviderKind::GitHub)
        };
        self.broker_kind.filter(needs_none)
    }
}

/// Parses the name of a kind.
fn provider_kind() -> impl TypedValueParser<Value = ProviderKind> {
    let names = ProviderKind::ALL.map(ProviderKind::as_str);
    PossibleValuesParser::new(names)
        .map(|name| ProviderKind::parse(&name).unwrap_or(ProviderKind::Oidc))
}
