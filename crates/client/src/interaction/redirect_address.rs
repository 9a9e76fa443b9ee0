//! [`RedirectAddress`]: the host, port and path of a loopback redirect URI.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;
use url::Url;

use super::InteractionError;

/// The host, port and path of a loopback redirect URI. `http://127.0.0.1/callback` on any free port
/// by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectAddress {
    host: Host,
    port: u16,
    path: String,
}

/// A loopback host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    V4,
    V6,
    /// `127.0.0.1` and `::1`, because a browser can choose either.
    Localhost,
}

/// Why a redirect address is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectAddressError {
    /// The host is not a loopback host.
    #[error("the host of the redirect must be 127.0.0.1, ::1 or localhost")]
    Host,
    /// The path is not a plain absolute path.
    #[error(
        "the path of the redirect must begin with `/`, be at most 256 characters, and have no query, fragment or dot segment"
    )]
    Path,
}

impl Default for RedirectAddress {
    fn default() -> Self {
        Self {
            host: Host::V4,
            port: 0,
            path: DEFAULT_PATH.to_owned(),
        }
    }
}

/// The path of the default address.
const DEFAULT_PATH: &str = "/callback";
/// The maximum length of a path, in bytes.
const MAX_PATH: usize = 256;
/// The maximum number of attempts to find a port that is free on both loopback addresses.
const ATTEMPTS: usize = 8;

impl RedirectAddress {
    /// Returns this address with another host: `127.0.0.1`, `::1`, `[::1]` or `localhost`.
    ///
    /// # Errors
    /// [`RedirectAddressError::Host`] for any other host: the code would leave this machine.
    pub fn with_host(self, host: &str) -> Result<Self, RedirectAddressError> {
        let host = match host {
            "127.0.0.1" => Host::V4,
            "::1" | "[::1]" => Host::V6,
            "localhost" => Host::Localhost,
            _ => return Err(RedirectAddressError::Host),
        };
        Ok(Self { host, ..self })
    }

    /// Returns this address with another path, exactly as it was registered.
    ///
    /// # Errors
    /// [`RedirectAddressError::Path`] when the path is longer than 256 bytes, or a URL parser
    /// changes it.
    pub fn with_path(self, path: &str) -> Result<Self, RedirectAddressError> {
        let is_plain = path.starts_with('/') && path.len() <= MAX_PATH;
        let unchanged =
            |url: &Url| url.path() == path && url.query().is_none() && url.fragment().is_none();
        let url = Url::parse(&format!("http://127.0.0.1{path}"))
            .ok()
            .filter(unchanged);
        match url.filter(|_| is_plain) {
            Some(_) => Ok(Self {
                path: path.to_owned(),
                ..self
            }),
            None => Err(RedirectAddressError::Path),
        }
    }

    /// Returns this address with another port; 0 for a free one.
    #[must_use]
    pub fn with_port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// The port; 0 for a free one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The redirect URI.
    ///
    /// # Errors
    /// None in practice: every part has been validated.
    pub fn uri(&self) -> Result<Url, InteractionError> {
        Url::parse(&self.to_string())
            .map_err(|_| InteractionError::Listen(io::ErrorKind::AddrNotAvailable))
    }

    /// Whether the port is free now.
    pub fn is_free(&self) -> bool {
        self.addresses(self.port)
            .iter()
            .all(|address| match std::net::TcpListener::bind(address) {
                Ok(_) => true,
                Err(error) => {
                    address.is_ipv6() && self.host == Host::Localhost && is_missing(&error)
                }
            })
    }

    /// Returns this address with a port that is free now, or None if there is none.
    pub fn with_free_port(&self) -> Option<Self> {
        let first = *self.addresses(0).first()?;
        (0..ATTEMPTS).find_map(|_| {
            let port = std::net::TcpListener::bind(first)
                .and_then(|listener| listener.local_addr())
                .ok()?
                .port();
            Some(self.clone().with_port(port)).filter(Self::is_free)
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Binds every address of the host. Without IPv6, `localhost` is `127.0.0.1` only. If another
    /// program uses the port on one of the addresses, this fails, because that program could
    /// receive the code.
    pub(super) async fn bind(self) -> Result<(Self, Vec<TcpListener>), InteractionError> {
        let mut attempts = if self.port == 0 { ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            match self.bind_once().await {
                Ok((port, listeners)) => return Ok((Self { port, ..self }, listeners)),
                Err(_) if attempts > 0 => {}
                Err(error) => return Err(InteractionError::Listen(error.kind())),
            }
        }
    }

    async fn bind_once(&self) -> io::Result<(u16, Vec<TcpListener>)> {
        let mut port = self.port;
        let mut listeners = Vec::new();
        for address in self.addresses(port) {
            match TcpListener::bind(SocketAddr::new(address.ip(), port)).await {
                Ok(listener) => {
                    port = listener.local_addr()?.port();
                    listeners.push(listener);
                }
                Err(error) if !listeners.is_empty() && is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((port, listeners))
    }

    fn addresses(&self, port: u16) -> Vec<SocketAddr> {
        let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let addresses = match self.host {
            Host::V4 => vec![v4],
            Host::V6 => vec![v6],
            Host::Localhost => vec![v4, v6],
        };
        addresses
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect()
    }
}

/// Whether this machine lacks the address, for example because IPv6 is off.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported)
        // EAFNOSUPPORT has no `ErrorKind`.
        || (cfg!(target_os = "linux") && error.raw_os_error() == Some(97))
}

impl fmt::Display for RedirectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.host {
            Host::V4 => "127.0.0.1",
            Host::V6 => "[::1]",
            Host::Localhost => "localhost",
        };
        write!(f, "http://{host}:{}{}", self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I3: only loopback hosts, and paths that a URL parser does not change.
    #[test]
    fn only_loopback_addresses_are_accepted() {
        let address = RedirectAddress::default()
            .with_host("localhost")
            .unwrap()
            .with_path("/oauth/callback")
            .unwrap();
        assert_eq!(
            address.with_port(9696).uri().unwrap().as_str(),
            "http://localhost:9696/oauth/callback"
        );
        for host in [
            "0.0.0.0",
            "::",
            "example.com",
            "127.0.0.2",
            "LOCALHOST",
            "localhost.",
            "localhost@evil.example",
            "",
        ] {
            assert_eq!(
                RedirectAddress::default().with_host(host),
                Err(RedirectAddressError::Host),
                "{host}"
            );
        }
        let long = format!("/{}", "a".repeat(MAX_PATH));
        for path in [
            "callback", "", "/a?b", "/a#b", "/a/../b", "/./a", "/a b", "/ü", "/a\\b", "/a\nb",
            &long,
        ] {
            assert_eq!(
                RedirectAddress::default().with_path(path),
                Err(RedirectAddressError::Path),
                "{path}"
            );
        }
    }

    /// I3: a port that another program uses on one address of `localhost` is not used.
    #[tokio::test]
    async fn localhost_is_bound_on_both_addresses() {
        let localhost = RedirectAddress::default().with_host("localhost").unwrap();
        let (bound, listeners) = localhost.clone().bind().await.unwrap();
        assert!(bound.port() != 0);
        let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok();
        assert_eq!(listeners.len(), if has_ipv6 { 2 } else { 1 });
        assert!(!bound.is_free());
        assert!(bound.clone().bind().await.is_err());
        drop(listeners);
        if let Ok(other) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await {
            let taken = localhost.with_port(other.local_addr().unwrap().port());
            assert!(!taken.is_free());
            assert!(taken.bind().await.is_err());
        }
    }
}
