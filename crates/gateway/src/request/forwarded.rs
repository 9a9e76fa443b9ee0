//! [`PublicAddress`]: the headers `Forwarded` (RFC 7239) and `X-Forwarded-*`.

use std::net::IpAddr;

use http::{HeaderName, HeaderValue, header::FORWARDED};
use parking_lot::Mutex;
use portcullis_http1::{EncodedHeaders, RequestBuilder};
use url::Url;

use crate::error::UpstreamSettingsError;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Returns whether the header describes the path of a request through proxies. Does not include
/// `X-Forwarded-User` and similar, which identify the user.
pub(super) fn is_forwarded(name: &str) -> bool {
    const USER: [&str; 4] = [
        "x-forwarded-user",
        "x-forwarded-email",
        "x-forwarded-groups",
        "x-forwarded-preferred-username",
    ];
    name == "forwarded"
        || name == "x-real-ip"
        || (name.starts_with("x-forwarded-") && !USER.contains(&name))
}

/// The public address of this service, as `Forwarded` (RFC 7239) and `X-Forwarded-*` report it.
pub(super) struct PublicAddress {
    proto: HeaderValue,
    host: HeaderValue,
    /// The end of every `Forwarded` value.
    forwarded_suffix: Box<str>,
    /// A direct-mapped cache of the encoded headers, by client address.
    cache: Mutex<[Option<CachedHeaders>; CACHE_SLOTS]>,
}

/// The number of client addresses whose headers are kept. A worker serves few clients at a time,
/// and encoding costs more than a lookup.
const CACHE_SLOTS: usize = 16;

/// The encoded headers of requests from one address.
struct CachedHeaders {
    client: Option<IpAddr>,
    encoded: EncodedHeaders,
}

impl PublicAddress {
    /// Prepares the values for the URL under which clients reach this service. Fails if the URL is
    /// neither `http` nor `https` or has no host.
    pub(super) fn new(url: &Url) -> Result<Self, UpstreamSettingsError> {
        let scheme = url.scheme();
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            return Err(UpstreamSettingsError::PublicUrl);
        }
        Ok(Self {
            proto: HeaderValue::from_str(scheme).map_err(|_| UpstreamSettingsError::PublicUrl)?,
            host: HeaderValue::from_str(host).map_err(|_| UpstreamSettingsError::PublicUrl)?,
            forwarded_suffix: format!(";host=\"{host}\";proto={scheme}").into(),
            cache: Mutex::default(),
        })
    }

    /// Adds `Forwarded` and `X-Forwarded-*` to a request from the client at this address.
    pub(super) fn add_headers(&self, request: &mut RequestBuilder, client: Option<IpAddr>) {
        let slot = match client {
            Some(IpAddr::V4(address)) => address.to_bits() as usize,
            Some(IpAddr::V6(address)) => address.to_bits() as usize,
            None => 0,
        } % CACHE_SLOTS;
        let mut cache = self.cache.lock();
        match &cache[slot] {
            Some(cached) if cached.client == client => {
                request.headers(&cached.encoded);
            }
            _ => {
                let encoded = self.headers(client).into_iter().collect();
                request.headers(&encoded);
                cache[slot] = Some(CachedHeaders { client, encoded });
            }
        }
    }

    fn headers(&self, client: Option<IpAddr>) -> Vec<(HeaderName, HeaderValue)> {
        let address = client.map(|client| client.to_canonical());
        let node = match address {
            Some(IpAddr::V4(address)) => address.to_string(),
            // An IPv6 address is in brackets and therefore quoted (RFC 7239 section 6).
            Some(IpAddr::V6(address)) => format!("\"[{address}]\""),
            None => "unknown".into(),
        };
        let forwarded = format!("for={node}{}", self.forwarded_suffix)
            .try_into()
            .ok();
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
    use crate::request::rules::tests::Parsed;

    fn forward(public: &str, peer: Option<&str>) -> [Option<String>; 4] {
        let public = PublicAddress::new(&Url::parse(public).unwrap()).unwrap();
        forwarded_by(&public, peer)
    }

    fn forwarded_by(public: &PublicAddress, peer: Option<&str>) -> [Option<String>; 4] {
        let mut request = RequestBuilder::new(&Method::GET, &PathAndQuery::from_static("/"));
        public.add_headers(&mut request, peer.map(|peer| peer.parse().unwrap()));
        let headers = Parsed::from(&request.body(Bytes::new())).headers;
        [
            FORWARDED,
            X_FORWARDED_FOR,
            X_FORWARDED_PROTO,
            X_FORWARDED_HOST,
        ]
        .map(|name| {
            headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        })
    }

    /// L2: the headers contain the client's address and this service's scheme and host.
    #[test]
    fn values() {
        let [forwarded, address, proto, host] =
            forward("https://mcp.example.com:8443/mcp", Some("192.0.2.7"));
        assert_eq!(
            forwarded.unwrap(),
            r#"for=192.0.2.7;host="mcp.example.com:8443";proto=https"#
        );
        assert_eq!(address.unwrap(), "192.0.2.7");
        assert_eq!(proto.unwrap(), "https");
        assert_eq!(host.unwrap(), "mcp.example.com:8443");

        let [forwarded, address, ..] = forward("http://localhost", Some("2001:db8::1"));
        assert_eq!(
            forwarded.unwrap(),
            r#"for="[2001:db8::1]";host="localhost";proto=http"#
        );
        assert_eq!(address.unwrap(), "2001:db8::1");

        let [forwarded, ..] = forward("http://localhost", Some("::ffff:192.0.2.7"));
        assert!(forwarded.unwrap().starts_with("for=192.0.2.7;"));

        let [forwarded, address, ..] = forward("http://localhost", None);
        assert_eq!(forwarded.unwrap().split(';').next(), Some("for=unknown"));
        assert_eq!(address, None);
    }

    /// L2: addresses that share a cache slot are not confused.
    #[test]
    fn cached_values_belong_to_the_client() {
        let public = PublicAddress::new(&Url::parse("http://localhost").unwrap()).unwrap();
        for _ in 0..2 {
            for peer in [
                "192.0.2.7",
                "192.0.2.23",
                "2001:db8::7",
                "::ffff:192.0.2.7",
                "192.0.2.7",
            ] {
                let expected = peer.trim_start_matches("::ffff:");
                assert_eq!(
                    forwarded_by(&public, Some(peer))[1].as_deref(),
                    Some(expected)
                );
            }
        }
    }

    #[test]
    fn a_public_url_needs_a_host() {
        assert_eq!(
            PublicAddress::new(&Url::parse("mailto:x@y").unwrap()).err(),
            Some(UpstreamSettingsError::PublicUrl)
        );
    }
}
