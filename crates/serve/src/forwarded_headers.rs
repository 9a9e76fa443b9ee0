//! [`ForwardedHeaders`]: warnings if a proxy in front is not named in `trusted_proxies`, or does not
//! report its clients.

use std::{
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use http::{HeaderMap, Request};
use portcullis_guard::TrustedProxies;

/// The number of requests that are examined. A proxy in front is noticed with the first one.
const EXAMINED: u32 = 1000;

/// Examines the first requests of a configuration for forwarding headers that are ignored or
/// missing, and warns once of each.
pub(super) struct ForwardedHeaders {
    proxies: TrustedProxies,
    /// The number of requests still to be examined. 0 after all warnings.
    remaining: AtomicU32,
    may_be_ignored: AtomicBool,
    may_be_missing: AtomicBool,
}

impl ForwardedHeaders {
    pub(super) fn new(proxies: TrustedProxies) -> Self {
        Self {
            remaining: AtomicU32::new(EXAMINED),
            may_be_ignored: AtomicBool::new(true),
            may_be_missing: AtomicBool::new(!proxies.is_empty()),
            proxies,
        }
    }

    /// Examines a request for a resource or the broker, unless enough were examined.
    pub(super) fn examine<B>(&self, peer: SocketAddr, request: &Request<B>) {
        if self.remaining.load(Ordering::Relaxed) > 0 {
            self.examine_one(peer, request.uri().path(), request.headers());
        }
    }

    /// Returns the address of the client of a request.
    pub(super) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        self.proxies.client(peer, headers)
    }

    #[cold]
    fn examine_one(&self, peer: SocketAddr, path: &str, headers: &HeaderMap) {
        if self.may_be_ignored.load(Ordering::Relaxed) {
            self.warn_if_ignored(peer, headers);
        }
        // Documents have no limit per address. `check --online` requests them from this machine.
        if self.may_be_missing.load(Ordering::Relaxed) && !path.starts_with("/.well-known/") {
            self.warn_if_missing(peer, headers);
        }
        self.count();
    }

    fn warn_if_ignored(&self, peer: SocketAddr, headers: &HeaderMap) {
        let Some(header) = self.proxies.ignored_header(peer, headers) else {
            return;
        };
        // Of requests at the same time, one warns.
        if !self.may_be_ignored.swap(false, Ordering::Relaxed) {
            return;
        }
        let address = peer.ip().to_canonical();
        tracing::warn!(
            peer.address = %address, header = %header,
            "forwarded headers from {address} are ignored, so that limits and records have this address for all its clients; \
             if it is the address of your proxy, add it to trusted_proxies"
        );
    }

    fn warn_if_missing(&self, peer: SocketAddr, headers: &HeaderMap) {
        let Some(header) = self.proxies.missing_header(peer, headers) else {
            return;
        };
        if !self.may_be_missing.swap(false, Ordering::Relaxed) {
            return;
        }
        let address = peer.ip().to_canonical();
        tracing::warn!(
            peer.address = %address, header = %header,
            "a request from {address}, which is in trusted_proxies, has no {header}, so that limits and records have this address \
             for all clients of that proxy; let the proxy set {header} to the address of its client, or name the header that it \
             sends in trusted_proxy_header"
        );
    }

    /// Counts an examined request. Nothing is left to examine after all warnings.
    fn count(&self) {
        let may_warn = self.may_be_ignored.load(Ordering::Relaxed)
            || self.may_be_missing.load(Ordering::Relaxed);
        if !may_warn {
            self.remaining.store(0, Ordering::Relaxed);
            return;
        }
        // An error means that another request has ended the examination.
        let _ = self
            .remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                count.checked_sub(1)
            });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use portcullis_guard::ProxyHeader;

    use super::*;

    const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 1234);

    /// Examines a request for this path, with the header or without.
    fn examine(headers: &ForwardedHeaders, path: &str, header: Option<&str>) {
        let mut request = Request::get(path);
        if let Some(name) = header {
            request = request.header(name, "198.51.100.1");
        }
        headers.examine(PEER, &request.body(()).unwrap());
    }

    /// J5: after all warnings, and after enough requests without one, no request is examined.
    #[test]
    fn few_requests_are_examined() {
        let headers = ForwardedHeaders::new(TrustedProxies::default());
        let remaining = || headers.remaining.load(Ordering::Relaxed);
        examine(&headers, "/mcp", None);
        assert_eq!(remaining(), EXAMINED - 1);
        examine(&headers, "/mcp", Some("forwarded"));
        examine(&headers, "/mcp", Some("forwarded"));
        assert_eq!(remaining(), 0);

        let headers = ForwardedHeaders::new(TrustedProxies::default());
        (0..=EXAMINED).for_each(|_| examine(&headers, "/mcp", None));
        assert_eq!(headers.remaining.load(Ordering::Relaxed), 0);
    }

    /// J5: a trusted proxy that sends the header causes no warning, nor does one that requests a
    /// document without it. The warning about a missing header does not end the examination for
    /// ignored ones.
    #[test]
    fn missing_headers() {
        let proxies = TrustedProxies::new(["192.0.2.7"], ProxyHeader::XForwardedFor).unwrap();
        let headers = ForwardedHeaders::new(proxies);
        let may_be_missing = || headers.may_be_missing.load(Ordering::Relaxed);
        examine(&headers, "/mcp", Some("x-forwarded-for"));
        examine(&headers, "/.well-known/oauth-protected-resource/mcp", None);
        assert!(may_be_missing());
        examine(&headers, "/mcp", None);
        assert!(!may_be_missing());
        assert!(headers.may_be_ignored.load(Ordering::Relaxed));
        assert_eq!(headers.remaining.load(Ordering::Relaxed), EXAMINED - 3);
    }
}
