use std::net::IpAddr;

use portcullis_metadata::{is_https_or_loopback_http, is_loopback};
use url::{Host, Url};

use crate::{
    Refusal,
    addresses::{self, Reach},
};

/// Which addresses a fetch may go to: who wrote the URL decides.
///
/// Both ask for `https`, with plain `http` to a loopback host as the exception, and refuse user information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlPolicy {
    /// The operator of this process wrote the URL, or it stands in a document of an issuer that the operator
    /// configured: private addresses are fine, plain `http` to loopback is, and the egress proxy is used.
    Operator,
    /// A peer supplied the URL. Only public addresses are fine, judged on what the name resolves to, and no
    /// proxy is used, since a proxy would resolve the name itself.
    Peer {
        /// Whether loopback hosts are fine, with `http` too: only when the URL that the person started from was
        /// itself a loopback one. The host must be loopback by its name or literal; another name that
        /// resolves to loopback is still refused.
        loopback_http: bool,
        /// Whether private, unique-local, shared (CGNAT) and loopback addresses are fine. Link-local, multicast,
        /// unspecified, documentation and cloud metadata addresses stay refused.
        private_addresses: bool,
    },
}

impl UrlPolicy {
    /// The policy for what a peer supplies when a person started from `start`: loopback is fine exactly when
    /// `start` is loopback, private addresses are not.
    pub fn peer_of(start: &Url) -> Self {
        Self::Peer { loopback_http: is_loopback(start), private_addresses: false }
    }

    /// Judges a URL before anything is resolved. A literal address is judged here and finally; a name is judged
    /// again, by [`admits`](Self::admits), on each address that it resolves to.
    ///
    /// # Errors
    /// When the scheme, user information or a literal address is not acceptable.
    pub fn check(self, url: &Url) -> Result<(), Refusal> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInformation);
        }
        if !is_https_or_loopback_http(url) {
            return Err(Refusal::Scheme);
        }
        let Self::Peer { loopback_http, private_addresses } = self else { return Ok(()) };
        if url.scheme() == "http" && !loopback_http {
            return Err(Refusal::Scheme);
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            _ if is_loopback(url) && !loopback_http && !private_addresses => return Err(Refusal::Address),
            _ => return Ok(()),
        };
        if self.admits(url, literal) { Ok(()) } else { Err(Refusal::Address) }
    }

    /// Whether a connection for `url` may go to `address`, one of those that its host stands for. `localhost` and
    /// names below it stand for loopback addresses alone, under either policy.
    pub fn admits(self, url: &Url, address: IpAddr) -> bool {
        self.admits_host(is_loopback(url), address)
    }

    pub(crate) fn admits_host(self, host_is_loopback: bool, address: IpAddr) -> bool {
        let reach = addresses::reach(address);
        if host_is_loopback && reach != Reach::Loopback {
            return false;
        }
        let Self::Peer { loopback_http, private_addresses } = self else { return true };
        match reach {
            Reach::Public => true,
            Reach::Loopback => private_addresses || (loopback_http && host_is_loopback),
            Reach::Private => private_addresses,
            Reach::Special => false,
        }
    }
}
