use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use http::{HeaderName, HeaderValue, header::FORWARDED};
use url::Url;

use crate::{
    UpstreamSettingsError,
    link::{HeaderLines, OutboundHead},
};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Whether a header of this name tells what came before a proxy, other than who the user is.
pub(crate) fn is_forwarded(name: &str) -> bool {
    const USER: [&str; 4] =
        ["x-forwarded-user", "x-forwarded-email", "x-forwarded-groups", "x-forwarded-preferred-username"];
    name == "forwarded" || name == "x-real-ip" || (name.starts_with("x-forwarded-") && !USER.contains(&name))
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

/// What is said of requests from one address.
struct Said {
    peer: Option<IpAddr>,
    lines: HeaderLines,
}

impl PublicAddress {
    pub(crate) fn new(url: &Url) -> Result<Self, UpstreamSettingsError> {
        let (scheme, host) = (url.scheme(), &url[url::Position::BeforeHost..url::Position::AfterPort]);
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            return Err(UpstreamSettingsError::PublicUrl);
        }
        Ok(Self {
            proto: HeaderValue::from_str(scheme).map_err(|_| UpstreamSettingsError::PublicUrl)?,
            host: HeaderValue::from_str(host).map_err(|_| UpstreamSettingsError::PublicUrl)?,
            rest: format!(";host=\"{host}\";proto={scheme}").into(),
            said: Mutex::default(),
        })
    }

    /// Says in `head` where the request came from and where it was sent to.
    pub(crate) fn add(&self, head: &mut OutboundHead, peer: Option<IpAddr>) {
        let place = match peer {
            Some(IpAddr::V4(address)) => address.to_bits() as usize,
            Some(IpAddr::V6(address)) => address.to_bits() as usize,
            None => 0,
        } % PLACES;
        let mut places = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match &places[place] {
            Some(said) if said.peer == peer => head.headers(&said.lines),
            _ => {
                let said = Said { peer, lines: self.say(peer).into_iter().collect() };
                head.headers(&said.lines);
                places[place] = Some(said);
            }
        }
    }

    fn say(&self, peer: Option<IpAddr>) -> Vec<(HeaderName, HeaderValue)> {
        let address = peer.map(|peer| peer.to_canonical());
        let node = match address {
            Some(IpAddr::V4(address)) => address.to_string(),
            // An IPv6 address stands in brackets and so in quotes (RFC 7239 section 6).
            Some(IpAddr::V6(address)) => format!("\"[{address}]\""),
            None => "unknown".into(),
        };
        let forwarded = format!("for={node}{}", self.rest).try_into().ok();
        let forwarded_for = address.and_then(|address| address.to_string().try_into().ok());
        [
            forwarded.map(|value| (FORWARDED, value)),
            forwarded_for.map(|value| (X_FORWARDED_FOR, value)),
            Some((X_FORWARDED_PROTO, self.proto.clone())),
            Some((X_FORWARDED_HOST, self.host.clone())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Method, uri::PathAndQuery};

    use super::*;

    fn said(public: &str, peer: Option<&str>) -> [Option<String>; 4] {
        let public = PublicAddress::new(&Url::parse(public).unwrap()).unwrap();
        said_again(&public, peer)
    }

    fn said_again(public: &PublicAddress, peer: Option<&str>) -> [Option<String>; 4] {
        let mut head = OutboundHead::new(&Method::GET, &PathAndQuery::from_static("/"));
        public.add(&mut head, peer.map(|peer| peer.parse().unwrap()));
        let headers = head.finish(Bytes::new()).parsed().headers;
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
        assert_eq!(
            PublicAddress::new(&Url::parse("mailto:x@y").unwrap()).err(),
            Some(UpstreamSettingsError::PublicUrl)
        );
    }
}
