//! [`IssuerActivity`]: how often an issuer was asked.

use super::{TrustedIssuer, call_counter::CallCounts};

/// How often the servers of an issuer were asked since the issuer was created, and how often that failed.
/// [`TrustedIssuer::activity`] returns it, for metrics. A token that is verified with known keys asks no server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerActivity {
    /// Fetches of the keys and the metadata.
    pub fetches: u64,
    /// Fetches that failed. The former keys remain in use.
    pub fetch_failures: u64,
    /// Calls of the introspection endpoint.
    pub introspections: u64,
    /// Calls that failed. A response that a token is not active is not a failure.
    pub introspection_failures: u64,
}

impl TrustedIssuer {
    /// Returns how often the keys and metadata were fetched, and tokens introspected.
    pub fn activity(&self) -> IssuerActivity {
        let fetches = self.refresh_state.counts();
        let introspections = self.introspection.as_ref().map_or(CallCounts::default(), |client| client.counts());
        IssuerActivity {
            fetches: fetches.all,
            fetch_failures: fetches.failed,
            introspections: introspections.all,
            introspection_failures: introspections.failed,
        }
    }
}
