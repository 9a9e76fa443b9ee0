//! [`AddressLimits`]: how often one address may send requests to the broker.

use std::{net::IpAddr, sync::Arc, time::Duration};

use portcullis_guard::limit::{LimitExceeded, Rate, RateLimiter};
use portcullis_metadata::Clock;

const MINUTE: Duration = Duration::from_secs(60);
/// The number of addresses that are counted apart from others.
const ADDRESSES: usize = 16_384;

/// How often one address may send requests to the broker. Several users may share an address.
pub(crate) struct AddressLimits {
    registrations: Arc<RateLimiter>,
    pages: Arc<RateLimiter>,
    tokens: Arc<RateLimiter>,
}

impl AddressLimits {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Option<Self> {
        let limiter = |requests| {
            let rate = Rate::new(requests, MINUTE).ok()?;
            Some(RateLimiter::new(rate, ADDRESSES, Arc::clone(clock)))
        };
        Some(Self {
            registrations: limiter(60)?,
            pages: limiter(120)?,
            tokens: limiter(1200)?,
        })
    }

    /// Counts a registration.
    pub(crate) fn registrations(&self, address: IpAddr) -> Result<(), LimitExceeded> {
        self.registrations.check_address(Some(address))
    }

    /// Counts a request of a browser: for the consent page, its answer, or the way back from the
    /// provider.
    pub(crate) fn pages(&self, address: IpAddr) -> Result<(), LimitExceeded> {
        self.pages.check_address(Some(address))
    }

    /// Counts a request with a code, a token, or a credential.
    pub(crate) fn tokens(&self, address: IpAddr) -> Result<(), LimitExceeded> {
        self.tokens.check_address(Some(address))
    }
}
