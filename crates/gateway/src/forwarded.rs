use std::net::IpAddr;

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
        })
    }

    /// Says in `headers` where the request came from and where it was sent to.
    pub(crate) fn add(&self, headers: &mut HeaderMap, peer: Option<IpAddr>) {
        let address = peer.map(|peer| peer.to_canonical().to_string());
        if let Ok(value) = HeaderValue::try_from(self.forwarded(address.as_deref())) {
            headers.insert(FORWARDED, value);
        }
        if let Some(Ok(value)) = address.map(HeaderValue::try_from) {
            headers.insert(X_FORWARDED_FOR, value);
        }
        headers.insert(X_FORWARDED_PROTO, self.proto.clone());
        headers.insert(X_FORWARDED_HOST, self.host.clone());
    }

    fn forwarded(&self, address: Option<&str>) -> String {
        let [before, address, after] = match address {
            // A colon makes it an IPv6 address, which stands in brackets and so in quotes (RFC 7239 section 6).
            Some(address) if address.contains(':') => ["for=\"[", address, "]\""],
            Some(address) => ["for=", address, ""],
            None => ["for=", "unknown", ""],
        };
        [before, address, after, &self.rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(public: &str, peer: Option<&str>) -> [Option<String>; 4] {
        let mut headers = HeaderMap::new();
        let public = PublicAddress::new(&Url::parse(public).unwrap()).unwrap();
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

    #[test]
    fn public_urls_have_a_host() {
        assert_eq!(PublicAddress::new(&Url::parse("mailto:x@y").unwrap()).err(), Some(SettingsError::PublicUrl));
    }
}
