//! [`Answers`]: the values of the configuration so far, and their validation.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use portcullis_jose::Algorithm;
use portcullis_metadata::{Issuer, is_loopback};
use url::{Host, Url};

use super::template;
use crate::{config, plan::Plan, serve};

/// The default of the base URL.
pub(super) const BASE_URL: &str = "http://127.0.0.1:3000";
/// The default of the upstream.
pub(super) const UPSTREAM: &str = "http://127.0.0.1:8000/mcp";
/// The default of the endpoint if the upstream has no path.
const ENDPOINT: &str = "/mcp";
/// The default of the scopes.
pub(super) const SCOPE: &str = "mcp:tools";
/// The port behind a proxy.
const PORT: u16 = 3000;

/// The values of the configuration. Values without an answer have a valid default, so that the others can be validated.
pub(super) struct Answers {
    /// The scheme, host and port that clients use.
    base_url: String,
    pub(super) listen: SocketAddr,
    /// Whether `listen` is an answer of the user.
    pub(super) is_listen_given: bool,
    pub(super) upstream: String,
    pub(super) endpoint: String,
    pub(super) scopes: Vec<String>,
    pub(super) issuer: Option<Issuer>,
    /// The algorithms of the issuer's keys. Empty if the default fits.
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) sessions_off: bool,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self {
            base_url: BASE_URL.to_owned(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            is_listen_given: false,
            upstream: UPSTREAM.to_owned(),
            endpoint: ENDPOINT.to_owned(),
            scopes: vec![SCOPE.to_owned()],
            issuer: None,
            algorithms: Vec::new(),
            sessions_off: false,
        }
    }

    pub(super) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Whether something in front of this server must terminate TLS.
    pub(super) fn is_https(&self) -> bool {
        self.base_url.starts_with("https:")
    }

    /// The URL of the endpoint, which clients enter.
    pub(super) fn resource(&self) -> String {
        format!("{}{}", self.base_url, self.endpoint)
    }

    /// Sets the base URL, and the address to listen on: that of the URL, or a local one that a proxy in front connects to.
    pub(super) fn set_base_url(&mut self, text: &str) -> Result<(), String> {
        self.base_url = text.to_owned();
        self.plan()?;
        // Without a slash at the end.
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        self.base_url = url.origin().ascii_serialization();
        self.listen = listen_address(&url);
        Ok(())
    }

    /// Sets the address to listen on, which no other answer changes then.
    pub(super) fn set_listen(&mut self, listen: SocketAddr) {
        self.listen = listen;
        self.is_listen_given = true;
    }

    /// Sets the upstream. The address to listen on is then another one.
    pub(super) fn set_upstream(&mut self, text: &str) -> Result<(), String> {
        text.clone_into(&mut self.upstream);
        self.plan()?;
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        let is_here = is_on_this_machine(&url) && url.port_or_known_default() == Some(self.listen.port());
        if is_here && (self.is_listen_given || !self.is_https()) {
            return Err(format!(
                "upstream = {text:?} is the address of this server; let the MCP server or this server use another port"
            ));
        }
        if is_here {
            self.listen.set_port(self.listen.port().wrapping_add(1).max(1024));
        }
        Ok(())
    }

    /// The path of the upstream, if it can be an endpoint.
    pub(super) fn default_endpoint(&self) -> String {
        let url = Url::parse(&self.upstream);
        let path = url.as_ref().map_or(ENDPOINT, Url::path);
        let candidate = Self { endpoint: path.to_owned(), ..Self::new() };
        if path != "/" && candidate.plan().is_ok() { path.to_owned() } else { ENDPOINT.to_owned() }
    }

    pub(super) fn set_endpoint(&mut self, text: &str) -> Result<(), String> {
        text.clone_into(&mut self.endpoint);
        self.plan().map(drop)
    }

    /// Sets the scopes of these texts, which spaces separate.
    pub(super) fn set_scopes<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let mut scopes: Vec<String> = Vec::new();
        for scope in texts.into_iter().flat_map(str::split_whitespace) {
            if !scopes.iter().any(|other| other == scope) {
                scopes.push(scope.to_owned());
            }
        }
        if scopes.is_empty() {
            return Err(format!("no scope is given; name one, such as {SCOPE}"));
        }
        self.scopes = scopes;
        self.plan().map(drop)
    }

    pub(super) fn set_issuer(&mut self, issuer: Issuer, algorithms: Vec<Algorithm>) -> Result<(), String> {
        self.issuer = Some(issuer);
        self.algorithms = algorithms;
        self.plan().map(drop)
    }

    /// The plan of the configuration.
    ///
    /// # Errors
    /// Fails with all errors of the configuration, on one line.
    pub(super) fn plan(&self) -> Result<Plan, String> {
        let config = config::from_text(&template::text(self)).map_err(|error| format!("{error:#}"))?;
        serve::runnable_plan(&config)
            .map_err(|errors| errors.iter().map(|error| error.text.as_str()).collect::<Vec<_>>().join("; "))
    }
}

/// The address and port of an http URL, which has a loopback host. For https, a local address for a proxy.
fn listen_address(base_url: &Url) -> SocketAddr {
    if base_url.scheme() != "http" {
        return SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    }
    let host: IpAddr = match base_url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    };
    SocketAddr::new(host, base_url.port_or_known_default().unwrap_or(PORT))
}

/// Whether the URL is on this machine, also at all its addresses (0.0.0.0).
fn is_on_this_machine(url: &Url) -> bool {
    let is_unspecified = match url.host() {
        Some(Host::Ipv4(address)) => address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_unspecified(),
        _ => false,
    };
    is_unspecified || is_loopback(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_url_decides_where_to_listen() {
        for (base_url, written, listen) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000", "127.0.0.1:3000"),
            ("http://localhost:4000/", "http://localhost:4000", "127.0.0.1:4000"),
            ("http://[::1]:4000", "http://[::1]:4000", "[::1]:4000"),
            ("http://127.0.0.1", "http://127.0.0.1", "127.0.0.1:80"),
            ("https://MCP.example.com/", "https://mcp.example.com", "127.0.0.1:3000"),
            ("https://localhost:8443", "https://localhost:8443", "127.0.0.1:3000"),
        ] {
            let mut answers = Answers::new();
            answers.set_base_url(base_url).unwrap();
            assert_eq!((answers.base_url(), answers.listen.to_string().as_str()), (written, listen));
            answers.plan().map(drop).unwrap();
        }
    }

    #[test]
    fn invalid_answers_have_a_reason() {
        let mut answers = Answers::new();
        for (error, words) in [
            (answers.set_base_url("http://mcp.example.com"), "https"),
            (Answers::new().set_base_url("https://mcp.example.com/path"), "endpoint"),
            (Answers::new().set_base_url("x"), "base_url"),
            (Answers::new().set_upstream("127.0.0.1:8000"), "upstream"),
            (Answers::new().set_upstream("http://127.0.0.1:3000/mcp"), "another port"),
            (Answers::new().set_endpoint("mcp"), "slash"),
            (Answers::new().set_scopes(["a\"b"]), "scope"),
            (Answers::new().set_scopes([" ", ""]), "no scope"),
        ] {
            let reason = error.unwrap_err();
            assert!(reason.contains(words) && !reason.contains('\n'), "{words}: {reason}");
        }
    }

    #[test]
    fn the_endpoint_follows_the_upstream() {
        for (upstream, endpoint) in [
            ("http://127.0.0.1:8000/mcp", "/mcp"),
            ("http://127.0.0.1:8000/api/tools", "/api/tools"),
            ("http://127.0.0.1:8000", "/mcp"),
            ("http://127.0.0.1:8000/a//b", "/mcp"),
            ("http://127.0.0.1:8000/healthz", "/mcp"),
        ] {
            let mut answers = Answers::new();
            answers.set_upstream(upstream).unwrap();
            assert_eq!(answers.default_endpoint(), endpoint, "{upstream}");
        }
    }

    #[test]
    fn behind_a_proxy_the_port_differs_from_the_upstream() {
        let mut answers = Answers::new();
        answers.set_base_url("https://mcp.example.com").unwrap();
        answers.set_upstream("http://localhost:3000/mcp").unwrap();
        assert_eq!(answers.listen.port(), 3001);
    }
}
