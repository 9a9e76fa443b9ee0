use std::net::{Ipv4Addr, SocketAddr};

use portcullis_jose::Algorithm;
use portcullis_metadata::Issuer;
use url::Url;

use super::broker::BrokerValues;

/// The values of the configuration file. [`Values::default`] is valid.
pub(super) struct Values {
    /// The scheme, host and port that clients use, without a slash at the end. Default:
    /// [`Values::BASE_URL`].
    pub(super) base_url: String,
    /// The address to listen on. Default: loopback and [`Values::PORT`].
    pub(super) listen: SocketAddr,
    /// Whether the user gave `listen`, so that no other answer changes it.
    pub(super) is_listen_given: bool,
    /// The proxies in front. Empty if the user named none.
    pub(super) trusted_proxies: Vec<String>,
    /// The URL of the MCP server. Default: [`Values::UPSTREAM`].
    pub(super) upstream: String,
    /// The path that clients use. Default: [`Values::ENDPOINT`].
    pub(super) endpoint: String,
    /// The scopes that every token must have. Default: [`Values::SCOPE`].
    pub(super) scopes: Vec<String>,
    /// The issuer of the tokens. `None` while there is no answer.
    pub(super) issuer: Option<Issuer>,
    /// The algorithms of the issuer's keys. Empty if the default fits.
    pub(super) algorithms: Vec<Algorithm>,
    /// The broker in place of an issuer. `None` without one.
    pub(super) broker: Option<BrokerValues>,
    /// Whether the MCP server assigns no session identifiers.
    pub(super) sessions_off: bool,
}

impl Values {
    pub(super) const BASE_URL: &str = "http://127.0.0.1:3000";
    pub(super) const UPSTREAM: &str = "http://127.0.0.1:8000/mcp";
    pub(super) const ENDPOINT: &str = "/mcp";
    pub(super) const SCOPE: &str = "mcp:tools";
    pub(super) const PORT: u16 = 3000;

    /// Whether something in front of this server must terminate TLS.
    pub(super) fn is_https(&self) -> bool {
        self.base_url.starts_with("https:")
    }

    /// The address to which the proxy in front passes requests, if the guides for proxies have
    /// another port. `None` if clients connect to this server itself.
    pub(super) fn proxy_target(&self) -> Option<SocketAddr> {
        let port = self.listen.port();
        let base_url = Url::parse(&self.base_url).ok()?;
        let is_behind_proxy = base_url.port_or_known_default() != Some(port);
        (is_behind_proxy && port != Self::PORT)
            .then(|| portcullis_config::reachable_address(self.listen))
    }

    /// The URL of the endpoint, which clients enter.
    pub(super) fn resource(&self) -> String {
        format!("{}{}", self.base_url, self.endpoint)
    }
}

impl Default for Values {
    fn default() -> Self {
        Self {
            base_url: Self::BASE_URL.to_owned(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, Self::PORT)),
            is_listen_given: false,
            trusted_proxies: Vec::new(),
            upstream: Self::UPSTREAM.to_owned(),
            endpoint: Self::ENDPOINT.to_owned(),
            scopes: vec![Self::SCOPE.to_owned()],
            issuer: None,
            algorithms: Vec::new(),
            broker: None,
            sessions_off: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: only a proxy in front must know the port, and only one that the guides do not have.
    #[test]
    fn the_target_of_a_proxy() {
        for (base_url, listen, expected) in [
            ("https://mcp.example.com", "127.0.0.1:3000", None),
            (
                "https://mcp.example.com",
                "127.0.0.1:3001",
                Some("127.0.0.1:3001"),
            ),
            (
                "https://mcp.example.com",
                "0.0.0.0:3001",
                Some("127.0.0.1:3001"),
            ),
            (
                "http://127.0.0.1:3000",
                "127.0.0.1:3001",
                Some("127.0.0.1:3001"),
            ),
            ("http://127.0.0.1:3001", "127.0.0.1:3001", None),
        ] {
            let values = Values {
                base_url: base_url.to_owned(),
                listen: listen.parse().unwrap(),
                ..Values::default()
            };
            let target = values.proxy_target().map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{base_url} {listen}");
        }
    }
}
