//! [`ForwardedHeaders`]: a warning if a proxy in front is not named in `trusted_proxies`.

use std::{
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicU32, Ordering},
};

use http::HeaderMap;
use portcullis_guard::TrustedProxies;

/// The number of requests that are examined. A proxy in front is noticed with the first one.
const EXAMINED: u32 = 1000;

/// Examines the first requests of a configuration for forwarding headers that are ignored, and
/// warns once.
pub(super) struct ForwardedHeaders {
    proxies: TrustedProxies,
    /// The number of requests still to be examined. 0 after the warning.
    remaining: AtomicU32,
}

impl ForwardedHeaders {
    pub(super) fn new(proxies: TrustedProxies) -> Self {
        Self {
            proxies,
            remaining: AtomicU32::new(EXAMINED),
        }
    }

    /// Examines a request, unless enough were examined.
    pub(super) fn examine(&self, peer: SocketAddr, headers: &HeaderMap) {
        if self.remaining.load(Ordering::Relaxed) > 0 {
            self.examine_one(peer, headers);
        }
    }

    /// Returns the address of the client of a request.
    pub(super) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        self.proxies.client(peer, headers)
    }

    #[cold]
    fn examine_one(&self, peer: SocketAddr, headers: &HeaderMap) {
        let Some(header) = self.proxies.ignored_header(peer, headers) else {
            // An error means that another request has ended the examination.
            let _ = self
                .remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                    count.checked_sub(1)
                });
            return;
        };
        // Of requests at the same time, one warns.
        if self.remaining.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        let address = peer.ip().to_canonical();
        tracing::warn!(
            peer.address = %address, header = %header,
            "forwarded headers from {address} are ignored, so that limits and records have this address for all its clients; \
             if it is the address of your proxy, add it to trusted_proxies"
        );
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// J5: after a warning, and after enough requests without one, no request is examined.
    #[test]
    fn few_requests_are_examined() {
        let peer = SocketAddr::from(([192, 0, 2, 7], 1234));
        let with = HeaderMap::from_iter([(
            http::header::FORWARDED,
            HeaderValue::from_static("for=198.51.100.1"),
        )]);
        let headers = ForwardedHeaders::new(TrustedProxies::default());
        let remaining = || headers.remaining.load(Ordering::Relaxed);
        headers.examine(peer, &HeaderMap::new());
        assert_eq!(remaining(), EXAMINED - 1);
        headers.examine(peer, &with);
        headers.examine(peer, &with);
        assert_eq!(remaining(), 0);

        let headers = ForwardedHeaders::new(TrustedProxies::default());
        (0..=EXAMINED).for_each(|_| headers.examine(peer, &HeaderMap::new()));
        assert_eq!(headers.remaining.load(Ordering::Relaxed), 0);
    }
}
