//! [`UpstreamAddress`]: the address of an upstream, and the target of its requests.

mod query;
mod trust;

use std::{fmt, path::PathBuf};

use http::{HeaderValue, uri::PathAndQuery};
use portcullis_metadata::syntax::url_without_secrets;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

pub(crate) use query::without_token;
pub use trust::UpstreamTrust;

use crate::error::UpstreamSettingsError;

/// The address of an HTTP upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamAddress {
    /// An `http` or `https` URL. Its path and query are the target of every request. The host name
    /// is resolved for each connection.
    Tcp(Url),
    /// A Unix socket.
    Unix {
        /// The path of the socket in the file system.
        path: PathBuf,
        /// An `http` URL. Its host is sent in `Host`, and its path and query are the target of
        /// every request.
        uri: Url,
    },
}

/// A parsed address: the endpoint to connect to and the target of the requests.
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    /// The value of `Host`.
    pub(crate) host: HeaderValue,
    path: Box<str>,
    query: Option<Box<str>>,
    /// The path and the query together.
    path_and_query: PathAndQuery,
    url: Url,
}

/// The endpoint to connect to.
pub(crate) enum Endpoint {
    /// Host and port of an `http` URL.
    Tcp(Host<String>, u16),
    /// Host and port of an `https` URL, and the name that its certificate must have.
    Tls {
        host: Host<String>,
        port: u16,
        name: ServerName<'static>,
        connector: TlsConnector,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// Host and port, or the path of the socket.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) | Self::Tls { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Target {
    /// Parses an address. `trust` is used for `https` addresses only. Fails if the URL cannot be
    /// that of an upstream, or an `https` URL has no `trust`.
    pub(crate) fn new(
        address: UpstreamAddress,
        trust: Option<UpstreamTrust>,
    ) -> Result<Self, UpstreamSettingsError> {
        let (url, socket) = match address {
            UpstreamAddress::Tcp(url) => (url, None),
            UpstreamAddress::Unix { .. } if cfg!(not(unix)) => {
                return Err(UpstreamSettingsError::NoUnixSockets);
            }
            UpstreamAddress::Unix { path, uri } => (uri, Some(path)),
        };
        let host = host(&url)?.to_owned();
        let port = url
            .port_or_known_default()
            .ok_or(UpstreamSettingsError::AddressScheme)?;
        let endpoint = match (socket, url.scheme()) {
            (None, "http") => Endpoint::Tcp(host, port),
            (None, "https") => {
                let UpstreamTrust(config) = trust.ok_or(UpstreamSettingsError::TrustMissing)?;
                Endpoint::Tls {
                    name: server_name(&host)?,
                    host,
                    port,
                    connector: TlsConnector::from(config),
                }
            }
            (Some(path), "http") => Endpoint::Unix(path),
            _ => return Err(UpstreamSettingsError::AddressScheme),
        };
        let authority = url.authority();
        let host = HeaderValue::from_str(authority)
            .map_err(|_| UpstreamSettingsError::AddressWithoutHost)?;
        let path = url.path().into();
        let query = url.query().map(Box::from);
        let path_and_query =
            origin_form(url.path(), url.query()).ok_or(UpstreamSettingsError::AddressPath)?;
        Ok(Self {
            endpoint,
            host,
            path,
            query,
            path_and_query,
            url,
        })
    }

    /// Returns the URL in a `Location` of this upstream (RFC 9110 section 10.2.2), without user
    /// information, query and fragment, which may contain secrets. `None` if it is not an http or
    /// https URL.
    pub(crate) fn redirected(&self, location: &HeaderValue) -> Option<Url> {
        let url = self
            .url
            .join(location.to_str().ok()?)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))?;
        Some(url_without_secrets(&url))
    }

    /// Returns the path and query of this address, followed by the query of the client. Client
    /// parameters that the address has, too, are removed, because servers disagree on which of two
    /// parameters with the same name counts. A query that would make the target longer than 65,534
    /// bytes is left out.
    pub(crate) fn path_and_query(&self, query: Option<&str>) -> PathAndQuery {
        let Some(query) = query.filter(|query| !query.is_empty()) else {
            return self.path_and_query.clone();
        };
        let joined = match &self.query {
            Some(own) => match query::without_those_of(query, own) {
                rest if rest.is_empty() => return self.path_and_query.clone(),
                rest => origin_form(&self.path, Some(&format!("{own}&{rest}"))),
            },
            None => origin_form(&self.path, Some(query)),
        };
        joined.unwrap_or_else(|| self.path_and_query.clone())
    }
}

/// Returns the host of a URL without user information and fragment.
fn host(url: &Url) -> Result<Host<&str>, UpstreamSettingsError> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UpstreamSettingsError::AddressUserInformation);
    }
    if url.fragment().is_some() {
        return Err(UpstreamSettingsError::AddressFragment);
    }
    url.host().ok_or(UpstreamSettingsError::AddressWithoutHost)
}

/// Returns the name that the upstream's certificate must contain.
fn server_name(host: &Host<String>) -> Result<ServerName<'static>, UpstreamSettingsError> {
    match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| UpstreamSettingsError::AddressWithoutHost),
        Host::Ipv4(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Ipv6(address) => Ok(ServerName::IpAddress((*address).into())),
    }
}

/// Joins a path and a query. Returns `None` if a request cannot have them.
fn origin_form(path: &str, query: Option<&str>) -> Option<PathAndQuery> {
    match query {
        Some(query) => format!("{path}?{query}").parse().ok(),
        None => path.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, UpstreamSettingsError> {
        Target::new(UpstreamAddress::Tcp(Url::parse(url).unwrap()), None)
    }

    fn error(url: &str) -> UpstreamSettingsError {
        target(url).err().unwrap()
    }

    #[test]
    fn addresses_are_parsed() {
        let plain = target("http://localhost/mcp").unwrap();
        assert!(
            matches!(&plain.endpoint, Endpoint::Tcp(Host::Domain(name), 80) if name == "localhost")
        );
        assert_eq!(plain.host.to_str().unwrap(), "localhost");
        assert_eq!(
            plain.path_and_query(None),
            PathAndQuery::from_static("/mcp")
        );
        let literal = target("http://[::1]:8000").unwrap();
        assert!(
            matches!(&literal.endpoint, Endpoint::Tcp(Host::Ipv6(address), 8000) if address.is_loopback())
        );
        assert_eq!(literal.host.to_str().unwrap(), "[::1]:8000");
        assert_eq!(literal.path_and_query(None), PathAndQuery::from_static("/"));
    }

    #[test]
    fn client_queries_are_appended() {
        let plain = target("http://localhost/mcp").unwrap();
        assert_eq!(plain.path_and_query(Some("a=1")), "/mcp?a=1");
        assert_eq!(plain.path_and_query(Some("")), "/mcp");
        let keyed = target("http://localhost/mcp?k=v").unwrap();
        assert_eq!(keyed.path_and_query(None), "/mcp?k=v");
        assert_eq!(keyed.path_and_query(Some("a=1")), "/mcp?k=v&a=1");
        assert_eq!(keyed.path_and_query(Some("a=1&k=evil")), "/mcp?k=v&a=1");
        assert_eq!(keyed.path_and_query(Some("k=evil")), "/mcp?k=v");
    }

    /// L1: an https upstream needs trusted certificates.
    #[test]
    fn unusable_addresses_are_rejected() {
        assert_eq!(
            error("https://upstream.example/mcp"),
            UpstreamSettingsError::TrustMissing
        );
        let uri = Url::parse("https://localhost/mcp").unwrap();
        let socket = UpstreamAddress::Unix {
            path: "/run/mcp.sock".into(),
            uri,
        };
        assert_eq!(
            Target::new(socket, None).err(),
            Some(UpstreamSettingsError::AddressScheme)
        );
        assert_eq!(
            error("ftp://upstream.example/"),
            UpstreamSettingsError::AddressScheme
        );
        assert_eq!(
            error("http://user:secret@upstream.example/"),
            UpstreamSettingsError::AddressUserInformation
        );
        assert_eq!(
            error("http://upstream.example/#x"),
            UpstreamSettingsError::AddressFragment
        );
    }
}
