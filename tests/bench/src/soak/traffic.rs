//! [`Traffic`]: what the clients of the soak share.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
};

use super::issuer::RotatingIssuer;

/// What all clients share: the server's address, the issuer, and the number of requests.
pub(super) struct Traffic {
    address: SocketAddr,
    issuer: RotatingIssuer,
    requests: AtomicU64,
}

impl Traffic {
    /// Creates the state of a run.
    pub(super) fn new(address: SocketAddr, issuer: RotatingIssuer) -> Self {
        Self {
            address,
            issuer,
            requests: AtomicU64::new(0),
        }
    }

    /// Returns the server's address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the issuer of the tokens.
    pub(super) fn issuer(&self) -> &RotatingIssuer {
        &self.issuer
    }

    /// Counts a request.
    pub(super) fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}
