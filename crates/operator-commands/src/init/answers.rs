use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use portcullis_config::{SecretSource, plan::Plan, shown_url};
use portcullis_jose::Algorithm;
use portcullis_metadata::{Issuer, Secret, syntax::is_loopback};
use portcullis_serve::runnable_plan;
use url::{Host, Url};

use super::{
    broker::{AllowRule, BrokerValues, check_variable},
    template, typed_url,
    values::Values,
};

/// The secret of the application while the environment has none. It is sent nowhere.
const UNKNOWN_SECRET: &str = "not set yet";

/// The answers so far. Values without an answer have a valid default, so that the others can be
/// validated.
///
/// After an invalid answer, its value stays until the next answer to the same question.
#[derive(Default)]
pub(super) struct Answers(Values);

impl Answers {
    pub(super) fn values(&self) -> &Values {
        &self.0
    }

    pub(super) fn into_values(self) -> Values {
        self.0
    }

    /// Sets the base URL, and the address to listen on: that of the URL, or a local one that a
    /// proxy in front connects to. As all setters, it fails with the reason, in one line, when the
    /// configuration would be invalid.
    pub(super) fn set_base_url(&mut self, text: &str) -> Result<(), String> {
        self.0.base_url = typed_url::for_clients(text);
        self.plan()?;
        // Without a slash at the end.
        let url = Url::parse(&self.0.base_url).map_err(|error| error.to_string())?;
        self.0.base_url = url.origin().ascii_serialization();
        self.0.listen = listen_address(&url);
        Ok(())
    }

    /// Sets the address to listen on, which no other answer changes then.
    pub(super) fn set_listen(&mut self, listen: SocketAddr) {
        self.0.listen = listen;
        self.0.is_listen_given = true;
    }

    /// Sets the addresses of the proxies in front.
    pub(super) fn set_trusted_proxies(&mut self, proxies: &[String]) -> Result<(), String> {
        self.0.trusted_proxies = proxies.to_vec();
        self.plan().map(drop)
    }

    /// Sets the port to listen on.
    pub(super) fn set_port(&mut self, port: u16) {
        self.0.listen.set_port(port);
    }

    /// Sets the upstream, and another port to listen on if the proxy in front would use that of the
    /// upstream. Fails also when the upstream is the address of this server.
    pub(super) fn set_upstream(&mut self, text: &str) -> Result<(), String> {
        let text = typed_url::for_upstream(text);
        self.0.upstream.clone_from(&text);
        self.plan()?;
        let url = Url::parse(&text).map_err(|error| error.to_string())?;
        let port = self.0.listen.port();
        let is_here = is_on_this_machine(&url) && url.port_or_known_default() == Some(port);
        if is_here && (self.0.is_listen_given || !self.0.is_https()) {
            return Err(format!(
                "upstream = {:?} is the address of this server; let the MCP server or this server use another port",
                shown_url(&text)
            ));
        }
        if is_here {
            self.set_port(port.wrapping_add(1).max(1024));
        }
        Ok(())
    }

    /// Sets whether the MCP server assigns no session identifiers.
    pub(super) fn set_sessions_off(&mut self, sessions_off: bool) {
        self.0.sessions_off = sessions_off;
    }

    /// Returns the path of the upstream if it can be an endpoint, otherwise the default.
    pub(super) fn default_endpoint(&self) -> String {
        let url = Url::parse(&self.0.upstream);
        let path = url.as_ref().map_or(Values::ENDPOINT, Url::path);
        let candidate = Self(Values {
            endpoint: path.to_owned(),
            ..Values::default()
        });
        if path != "/" && candidate.plan().is_ok() {
            path.to_owned()
        } else {
            Values::ENDPOINT.to_owned()
        }
    }

    pub(super) fn set_endpoint(&mut self, text: &str) -> Result<(), String> {
        text.clone_into(&mut self.0.endpoint);
        self.plan().map(drop)
    }

    /// Sets the scopes of these texts, which spaces or commas separate. Fails also when there is no
    /// scope, or one is the URL of a server of this configuration.
    pub(super) fn set_scopes<'a>(
        &mut self,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut scopes: Vec<String> = Vec::new();
        let is_separator = |c: char| c.is_whitespace() || c == ',';
        let texts = texts.into_iter().flat_map(|text| text.split(is_separator));
        for scope in texts.filter(|scope| !scope.is_empty()) {
            if self.is_url_of_server(scope) {
                return Err(format!(
                    "{} is the URL of a server, and not a scope; write the name of a permission, such as {}",
                    shown_url(scope),
                    Values::SCOPE
                ));
            }
            if !scopes.iter().any(|other| other == scope) {
                scopes.push(scope.to_owned());
            }
        }
        if scopes.is_empty() {
            return Err(format!(
                "no scope is given; name one, such as {}",
                Values::SCOPE
            ));
        }
        self.0.scopes = scopes;
        self.plan().map(drop)
    }

    /// Whether a text is the base URL, the upstream or the URL of the endpoint. Some authorization
    /// servers have other URLs as scopes.
    fn is_url_of_server(&self, text: &str) -> bool {
        let Values {
            base_url,
            upstream,
            endpoint,
            ..
        } = &self.0;
        let text = text.trim_end_matches('/');
        [
            base_url.clone(),
            upstream.clone(),
            format!("{base_url}{endpoint}"),
        ]
        .iter()
        .any(|url| url.trim_end_matches('/') == text)
    }

    /// Sets the issuer and the algorithms of its keys; none if the default fits.
    pub(super) fn set_issuer(
        &mut self,
        issuer: Issuer,
        algorithms: Vec<Algorithm>,
    ) -> Result<(), String> {
        self.0.issuer = Some(issuer);
        self.0.algorithms = algorithms;
        self.0.broker = None;
        self.plan().map(drop)
    }

    /// Sets a broker in place of the issuer.
    pub(super) fn set_broker(&mut self, broker: BrokerValues) -> Result<(), String> {
        self.0.issuer = None;
        self.0.algorithms = Vec::new();
        self.0.broker = Some(broker);
        self.plan().map(drop)
    }

    /// Sets the identifier of the application at the provider. As the two setters below, it changes
    /// nothing without a broker.
    pub(super) fn set_broker_client(&mut self, id: &str) -> Result<(), String> {
        if let Some(broker) = &mut self.0.broker {
            id.clone_into(&mut broker.client_id);
        }
        self.plan().map(drop)
    }

    /// Sets the environment variable with the secret of the application.
    pub(super) fn set_broker_secret(&mut self, variable: &str) -> Result<(), String> {
        check_variable(variable)?;
        if let Some(broker) = &mut self.0.broker {
            variable.clone_into(&mut broker.secret_variable);
        }
        self.plan().map(drop)
    }

    /// Sets the rules of these texts, each `CLAIM=VALUE`.
    pub(super) fn set_broker_allow<'a>(
        &mut self,
        rules: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), String> {
        let rules = rules.into_iter().map(AllowRule::parse);
        let rules: Vec<AllowRule> = rules.collect::<Result<_, _>>()?;
        if let Some(broker) = &mut self.0.broker {
            broker.allow = rules;
        }
        self.plan().map(drop)
    }

    /// Whether the environment has the secret of the application, if there is a broker.
    pub(super) fn has_broker_secret(&self) -> bool {
        let secret = |broker: &BrokerValues| SecretSource::Env(broker.secret_variable.clone());
        self.0
            .broker
            .as_ref()
            .is_some_and(|broker| secret(broker).read().is_ok())
    }

    /// Returns the plan of the configuration. The secret of the application may be set later. Fails
    /// with all errors of the configuration, in one line.
    pub(super) fn plan(&self) -> Result<Plan, String> {
        let mut config = portcullis_config::from_text(&template::text(&self.0))
            .map_err(|error| format!("{error:#}"))?;
        let providers = config.broker.iter_mut().flat_map(|it| &mut it.provider);
        for provider in providers.filter(|provider| provider.client_secret.read().is_err()) {
            provider.client_secret = SecretSource::Given(Secret::new(UNKNOWN_SECRET));
        }
        runnable_plan(&config).map_err(|errors| {
            errors
                .iter()
                .map(|error| error.text.as_str())
                .collect::<Vec<_>>()
                .join("; ")
        })
    }
}

/// Returns the address and port of an http URL, which has a loopback host. For https, a local
/// address for a proxy.
fn listen_address(base_url: &Url) -> SocketAddr {
    if base_url.scheme() != "http" {
        return SocketAddr::from((Ipv4Addr::LOCALHOST, Values::PORT));
    }
    let host: IpAddr = match base_url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    };
    SocketAddr::new(
        host,
        base_url.port_or_known_default().unwrap_or(Values::PORT),
    )
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
            (
                "http://127.0.0.1:3000",
                "http://127.0.0.1:3000",
                "127.0.0.1:3000",
            ),
            (
                "http://localhost:4000/",
                "http://localhost:4000",
                "127.0.0.1:4000",
            ),
            ("http://[::1]:4000", "http://[::1]:4000", "[::1]:4000"),
            ("http://127.0.0.1", "http://127.0.0.1", "127.0.0.1:80"),
            (
                "https://MCP.example.com/",
                "https://mcp.example.com",
                "127.0.0.1:3000",
            ),
            (
                "https://localhost:8443",
                "https://localhost:8443",
                "127.0.0.1:3000",
            ),
        ] {
            let mut answers = Answers::default();
            answers.set_base_url(base_url).unwrap();
            assert_eq!(answers.values().base_url.as_str(), written);
            assert_eq!(answers.values().listen.to_string().as_str(), listen);
            answers.plan().map(drop).unwrap();
        }
    }

    #[test]
    fn invalid_answers_have_a_reason() {
        let mut answers = Answers::default();
        for (error, words) in [
            (answers.set_base_url("http://mcp.example.com"), "https"),
            (
                Answers::default().set_base_url("https://mcp.example.com/path"),
                "endpoint",
            ),
            (Answers::default().set_base_url("x"), "base_url"),
            (Answers::default().set_upstream("mcp-server"), "upstream"),
            (
                Answers::default().set_scopes(["mcp:tools http://127.0.0.1:3000/mcp"]),
                "is the URL of a server",
            ),
            (Answers::default().set_scopes([","]), "no scope"),
            (
                Answers::default().set_upstream("http://127.0.0.1:3000/mcp"),
                "another port",
            ),
            (
                Answers::default().set_trusted_proxies(&["proxy.internal".to_owned()]),
                "trusted_proxies",
            ),
            (Answers::default().set_endpoint("mcp"), "slash"),
            (Answers::default().set_scopes(["a\"b"]), "scope"),
            (Answers::default().set_scopes([" ", ""]), "no scope"),
        ] {
            let reason = error.unwrap_err();
            assert!(reason.contains(words), "{words}: {reason}");
            assert!(!reason.contains('\n'), "{words}: {reason}");
        }
    }

    /// J2: the query of a URL is not repeated.
    #[test]
    fn secrets_in_urls_are_not_repeated() {
        let upstream = "http://127.0.0.1:3000/mcp?key=hunter2";
        let reason = Answers::default().set_upstream(upstream).unwrap_err();
        assert!(!reason.contains("hunter2"), "{reason}");
        let mut answers = Answers::default();
        let upstream = "http://127.0.0.1:8000/mcp?key=hunter2";
        answers.set_upstream(upstream).unwrap();
        let reason = answers.set_scopes([upstream]).unwrap_err();
        assert!(!reason.contains("hunter2"), "{reason}");
    }

    /// J9: hosts get their scheme, and scopes can be separated by commas.
    #[test]
    fn answers_are_normalized() {
        let mut answers = Answers::default();
        answers.set_base_url("mcp.example.com").unwrap();
        answers.set_upstream("127.0.0.1:8000/mcp").unwrap();
        answers
            .set_scopes(["mcp:tools, mcp:admin", "https://api.example.com/read"])
            .unwrap();
        let values = answers.values();
        assert_eq!(values.base_url, "https://mcp.example.com");
        assert_eq!(values.upstream, "http://127.0.0.1:8000/mcp");
        assert_eq!(
            values.scopes,
            ["mcp:tools", "mcp:admin", "https://api.example.com/read"]
        );
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
            let mut answers = Answers::default();
            answers.set_upstream(upstream).unwrap();
            assert_eq!(answers.default_endpoint(), endpoint, "{upstream}");
        }
    }

    #[test]
    fn behind_a_proxy_the_port_differs_from_the_upstream() {
        let mut answers = Answers::default();
        answers.set_base_url("https://mcp.example.com").unwrap();
        answers.set_upstream("http://localhost:3000/mcp").unwrap();
        assert_eq!(answers.values().listen.port(), 3001);
    }
}
