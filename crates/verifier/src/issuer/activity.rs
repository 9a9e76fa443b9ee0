//! [`IssuerActivity`]: how often the servers of an issuer were called.

use super::{TrustedIssuer, call_counter::CallCounts};

/// How often the servers of an issuer were called since the issuer was created, and how often that
/// failed. [`TrustedIssuer::activity`] returns it, for metrics. The verification of a token with
/// known keys calls no server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerActivity {
    /// Refreshes of the keys and the introspection endpoint. The requests of one refresh count
    /// once.
    pub fetches: u64,
    /// Refreshes that failed. The former keys and endpoint remain in use, unless the metadata stops
    /// naming a usable endpoint.
    pub fetch_failures: u64,
    /// Calls of the introspection endpoint, including probes.
    pub introspections: u64,
    /// Calls that failed. A response that a token is not active is not a failure.
    pub introspection_failures: u64,
}

impl TrustedIssuer {
    /// Returns how often the keys were refreshed and tokens were introspected.
    pub fn activity(&self) -> IssuerActivity {
        let fetches = self.refresh_state.counts();
        let introspections = self
            .introspection
            .as_ref()
            .map_or(CallCounts::default(), |client| client.counts());
        IssuerActivity {
            fetches: fetches.all,
            fetch_failures: fetches.failed,
            introspections: introspections.all,
            introspection_failures: introspections.failed,
        }
    }
}
