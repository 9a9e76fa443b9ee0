use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};
use url::Url;

use crate::SettingsError;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Whether a header of this name tells what came before a proxy.
pub(crate) fn is_forwarded(name: &str) -> bool {
    name == "forwarded" || name == "x-real-ip" || name.starts_with("x-forwarded-")
}

/// What `Forwarded` (RFC 7239) and `X-Forwarded-*` say of this service.
pub(crate) struct PublicAddress {
    proto: HeaderValue,
    host: HeaderValue,
    /// The end of `Forwarded`.
    rest: Box<str>,
    /// Clients come back: what was said of an address last, at a place that its bits choose.
    said: Mutex<[Option<Said>; PLACES]>,
}

const PLACES: usize = 16;

/// What is said of one client's address.
#[derive(Clone)]
struct Said {
    address: IpAddr,
    forwarded: HeaderValue,
    x_forwarded_for: HeaderValue,
}

impl PublicAddress {
    pub(crate) fn new(url: &Url) -> Result<Self, SettingsError> {
        let (scheme, host) = (url.scheme(), &url[url::Position::BeforeHost..url::Position::AfterPort]);
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            return Err(SettingsError::PublicUrl);
        }
        Ok(Self {
            proto: HeaderValue::from_str(scheme).map_err(|_| SettingsError::PublicUrl)?,
            host: HeaderValue::from_str(host).map_err(|_| SettingsError::PublicUrl)?,
            rest: format!(";host=\"{host}\";proto={scheme}").into(),
            said: Mutex::default(),
        })
    }

    /// Says in `headers` where the request came from and where it was sent to.
    pub(crate) fn add(&self, headers: &mut HeaderMap, peer: Option<IpAddr>) {
        match peer {
            Some(peer) => {
                if let Some(Said { forwarded, x_forwarded_for, .. }) = self.said(peer) {
                    headers.insert(FORWARDED, forwarded);
                    headers.insert(X_FORWARDED_FOR, x_forwarded_for);
                }
            }
            None => drop(self.forwarded("unknown").map(|value| headers.insert(FORWARDED, value))),
        }
        headers.insert(X_FORWARDED_PROTO, self.proto.clone());
        headers.insert(X_FORWARDED_HOST, self.host.clone());
    }

    fn said(&self, peer: IpAddr) -> Option<Said> {
        let place = match peer {
            IpAddr::V4(address) => address.to_bits() as usize,
            IpAddr::V6(address) => address.to_bits() as usize,
        } % PLACES;
        let mut places = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match &places[place] {
            Some(said) if said.address == peer => Some(said.clone()),
            _ => {
                let said = self.say(peer)?;
                places[place] = Some(said.clone());
                Some(said)
            }
        }
    }

    fn say(&self, peer: IpAddr) -> Option<Said> {
        let address = peer.to_canonical();
        let text = address.to_string();
        let forwarded = match address {
            IpAddr::V4(_) => self.forwarded(&text),
            // An IPv6 address stands in brackets and so in quotes (RFC 7239 section 6).
            IpAddr::V6(_) => self.forwarded(&format!("\"[{text}]\"")),
        };
        Some(Said { address: peer, forwarded: forwarded?, x_forwarded_for: text.try_into().ok()? })
    }

    fn forwarded(&self, node: &str) -> Option<HeaderValue> {
        format!("for={node}{}", self.rest).try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(public: &str, peer: Option<&str>) -> [Option<String>; 4] {
        let public = PublicAddress::new(&Url::parse(public).unwrap()).unwrap();
        said_again(&public, peer)
    }

    fn said_again(public: &PublicAddress, peer: Option<&str>) -> [Option<String>; 4] {
        let mut headers = HeaderMap::new();
        public.add(&mut headers, peer.map(|peer| peer.parse().unwrap()));
        [FORWARDED, X_FORWARDED_FOR, X_FORWARDED_PROTO, X_FORWARDED_HOST]
            .map(|name| headers.get(name).map(|value| value.to_str().unwrap().to_owned()))
    }

    /// L2: the client's address, and this service's own scheme and host.
    #[test]
    fn what_is_said() {
        let [forwarded, address, proto, host] = said("https://mcp.example.com:8443/mcp", Some("192.0.2.7"));
        assert_eq!(forwarded.unwrap(), r#"for=192.0.2.7;host="mcp.example.com:8443";proto=https"#);
        assert_eq!((address.unwrap(), proto.unwrap()), ("192.0.2.7".into(), "https".into()));
        assert_eq!(host.unwrap(), "mcp.example.com:8443");

        let [forwarded, address, ..] = said("http://localhost", Some("2001:db8::1"));
        assert_eq!(forwarded.unwrap(), r#"for="[2001:db8::1]";host="localhost";proto=http"#);
        assert_eq!(address.unwrap(), "2001:db8::1");

        let [forwarded, ..] = said("http://localhost", Some("::ffff:192.0.2.7"));
        assert!(forwarded.unwrap().starts_with("for=192.0.2.7;"));

        let [forwarded, address, ..] = said("http://localhost", None);
        assert_eq!((forwarded.unwrap().split(';').next(), address), (Some("for=unknown"), None));
    }

    /// L2: addresses that share a place are never taken for each other.
    #[test]
    fn each_client_has_its_own_address() {
        let public = PublicAddress::new(&Url::parse("http://localhost").unwrap()).unwrap();
        for _ in 0..2 {
            for peer in ["192.0.2.7", "192.0.2.23", "2001:db8::7", "::ffff:192.0.2.7", "192.0.2.7"] {
                let expected = peer.trim_start_matches("::ffff:");
                assert_eq!(said_again(&public, Some(peer))[1].as_deref(), Some(expected));
            }
        }
    }

    #[test]
    fn public_urls_have_a_host() {
        assert_eq!(PublicAddress::new(&Url::parse("mailto:x@y").unwrap()).err(), Some(SettingsError::PublicUrl));
    }
}
