//! [`IssuerHealth`]: whether tokens of an issuer can be verified.

use std::time::Duration;

/// Whether tokens of an issuer can be verified now, for readiness checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IssuerHealth {
    /// The issuer has fresh keys.
    Usable {
        /// The number of usable keys.
        keys: usize,
        /// The time since they were fetched.
        age: Duration,
    },
    /// The keys have expired and remain in use because the issuer is unavailable.
    Stale {
        /// The number of usable keys.
        keys: usize,
        /// The time since they were fetched.
        age: Duration,
        /// The code of the last refresh's error, if it failed.
        reason: Option<&'static str>,
    },
    /// Tokens are verified by introspection, and the endpoint is known.
    Introspected {
        /// The code of the last call's error, if it failed.
        reason: Option<&'static str>,
    },
    /// The first refresh has not completed yet.
    Pending,
    /// There is no usable key, or the introspection endpoint is unknown or rejects this client.
    Failed {
        /// The code of the last error.
        reason: &'static str,
    },
}

impl IssuerHealth {
    /// Returns whether tokens of the issuer can be verified.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Usable { .. } | Self::Stale { .. } | Self::Introspected { .. })
    }
}
