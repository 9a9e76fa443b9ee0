//! The structure of the configuration file. `crate::plan` validates what the values mean.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SecretSource, Span};

mod admin;
mod audiences;
mod audit;
mod broker;
mod ended_status;
mod issuer;
mod limits;
mod one_form;
mod resource;
mod session;
mod shared;
mod tls;
mod traces;

pub use admin::{ADMIN_TOKEN_VARIABLE, Admin, AdminListen};
pub use audiences::Audiences;
pub use audit::{Audit, AuditTarget};
pub use broker::{
    Broker, BrokerClients, BrokerGrant, BrokerIntrospection, BrokerPage, BrokerProvider,
    BrokerProviderKind,
};
pub use ended_status::EndedStatus;
pub use issuer::{IntrospectionAuth, Issuer, Validation};
pub use limits::{Limits, RateLimit};
pub use resource::{Authorization, Claim, Resource, Route, Rule, Sessions, Upstream};
pub use session::{Session, WithoutState};
pub use shared::SharedStore;
pub use tls::Tls;
pub use traces::{Traces, TracesClient};

/// The configuration file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address and port to listen on. A name such as `localhost` is resolved.
    #[serde(
        default = "default_listen",
        deserialize_with = "super::listen_address::deserialize"
    )]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The scheme, host and port under which clients reach this server: `https`, or `http` on
    /// loopback.
    #[schemars(example = "https://mcp.example.com")]
    pub base_url: String,
    /// The number of worker threads. Default: the number of cores.
    #[schemars(example = 4)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub workers: Option<usize>,
    /// How long the server still accepts and serves after the signal to shut down, while `/readyz`
    /// answers 503.
    #[serde(default = "default_shutdown_delay")]
    pub shutdown_delay: Span,
    /// How long a shutdown waits for requests in progress.
    #[serde(default = "default_shutdown_timeout")]
    pub shutdown_timeout: Span,
    /// When the configuration is read again.
    #[serde(default)]
    pub reload: Reload,
    /// Where session keys, ended sessions and last uses are kept over restarts; `off` for nowhere.
    /// Default: a directory of this user.
    #[schemars(example = "/var/lib/portcullis")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// Allows `auth = "none"` with a listener that is not on loopback.
    #[serde(default)]
    pub dangerous_allow_unauthenticated_network: bool,
    /// The addresses and networks of the proxies whose forwarding header is trusted.
    #[schemars(example = ["10.0.0.0/8"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
    /// The header in which trusted proxies report the client's address.
    #[serde(default)]
    pub trusted_proxy_header: ForwardedHeader,
    /// TLS on the listener. Default: plain HTTP, for loopback or behind a proxy that terminates
    /// TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The authorization servers whose tokens are accepted.
    #[serde(default)]
    pub issuer: Vec<Issuer>,
    /// The authorization server of this server. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<Broker>,
    /// The protected endpoints.
    pub resource: Vec<Resource>,
    /// The sessions of all resources.
    #[serde(default)]
    pub session: Session,
    /// What replicas share. Default: there is one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedStore>,
    /// Limits of bodies, heads, connections, streams and rates.
    #[serde(default)]
    pub limits: Limits,
    /// The audit trail. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// The listener for administrators. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<Admin>,
    /// Where spans of sampled requests are sent. Default: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
}

impl Config {
    /// A configuration without issuers and resources, and with the defaults of a file for
    /// everything else.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            listen: default_listen(),
            base_url: base_url.into(),
            workers: None,
            shutdown_delay: default_shutdown_delay(),
            shutdown_timeout: default_shutdown_timeout(),
            reload: Reload::default(),
            state_dir: None,
            dangerous_allow_unauthenticated_network: false,
            trusted_proxies: Vec::new(),
            trusted_proxy_header: ForwardedHeader::default(),
            tls: None,
            issuer: Vec::new(),
            broker: None,
            resource: Vec::new(),
            session: Session::default(),
            shared: None,
            limits: Limits::default(),
            audit: None,
            admin: None,
            traces: None,
        }
    }

    /// Returns the files that issuers, providers, resources and the listener for administrators
    /// name. Those of certificates and `session.keys` have checks of their own.
    pub fn files(&self) -> Vec<&Path> {
        let of_issuers = self.issuer.iter().flat_map(|issuer| {
            let secret = issuer.client_secret.as_ref().and_then(SecretSource::file);
            [
                issuer.jwks_file.as_deref(),
                issuer.ca_file.as_deref(),
                secret,
            ]
        });
        let of_resources = self
            .resource
            .iter()
            .map(|resource| resource.upstream_ca_file.as_deref());
        let of_providers = self
            .providers()
            .flat_map(|provider| [provider.ca_file.as_deref(), provider.client_secret.file()]);
        let of_broker = self.broker.iter().flat_map(|broker| {
            let keys = broker.keys.as_ref().and_then(SecretSource::file);
            let secrets = broker
                .introspection
                .iter()
                .map(|client| client.client_secret.file());
            secrets.chain([broker.page.logo_file.as_deref(), keys])
        });
        let of_admin = self.admin.iter().flat_map(|admin| {
            let metrics_token = admin.metrics_token.as_ref().and_then(SecretSource::file);
            [admin.token.file(), metrics_token]
        });
        of_issuers
            .chain(of_admin)
            .chain(of_resources)
            .chain(of_providers)
            .chain(of_broker)
            .flatten()
            .collect()
    }

    /// Returns the providers of the broker.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &BrokerProvider> {
        self.broker.iter().flat_map(|broker| &broker.provider)
    }
}

/// When the configuration is read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reload {
    /// At SIGHUP.
    #[default]
    Signal,
    /// At SIGHUP, and when the file or one that it names changes.
    Watch,
}

/// The header in which a proxy reports its client's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    #[default]
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ForwardedHeader {
    /// Returns the name of the header.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "X-Forwarded-For",
            Self::Forwarded => "Forwarded",
        }
    }
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 3000))
}

fn default_shutdown_delay() -> Span {
    Span::secs(0)
}

fn default_shutdown_timeout() -> Span {
    Span::secs(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration made in code has the defaults of one in a file.
    #[test]
    fn the_defaults_are_those_of_a_file() {
        let text = r#"
            base_url = "https://mcp.example.com"
            [[issuer]]
            issuer = "https://auth.example.com"
            [[resource]]
            endpoint = "/mcp"
            upstream = { http = "http://127.0.0.1:8000/mcp" }
        "#;
        let mut config = Config::new("https://mcp.example.com");
        config.issuer.push(Issuer::new("https://auth.example.com"));
        config.resource.push(Resource::new(
            "/mcp",
            Upstream::Http("http://127.0.0.1:8000/mcp".to_owned()),
        ));
        let value = |config: &Config| serde_json::to_value(config).unwrap();
        assert_eq!(value(&config), value(&crate::from_text(text).unwrap()));
    }
}
