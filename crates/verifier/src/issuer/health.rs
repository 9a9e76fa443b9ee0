//! [`IssuerHealth`]: whether tokens of an issuer can be verified.

use std::time::Duration;

use super::TrustedIssuer;
use crate::introspection::CLIENT_REJECTED;

/// Whether tokens of an issuer can be verified now, for readiness checks. [`TrustedIssuer::health`]
/// returns it.
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
        matches!(
            self,
            Self::Usable { .. } | Self::Stale { .. } | Self::Introspected { .. }
        )
    }
}

impl TrustedIssuer {
    /// Returns whether tokens of this issuer can be verified now.
    pub fn health(&self) -> IssuerHealth {
        let failure = self
            .refresh_state
            .last()
            .and_then(Result::err)
            .map(|error| error.code());
        match &self.introspection {
            Some(introspection) if !introspection.is_ready() => failure
                .map_or(IssuerHealth::Pending, |reason| IssuerHealth::Failed {
                    reason,
                }),
            Some(introspection) if introspection.is_client_rejected() => IssuerHealth::Failed {
                reason: CLIENT_REJECTED,
            },
            Some(introspection) if !self.settings.validation.verifies_signature() => {
                IssuerHealth::Introspected {
                    reason: introspection.last_failure(),
                }
            }
            _ => self.key_health(failure),
        }
    }

    /// Returns whether there are usable keys. `failure` is the code of the last refresh's error.
    fn key_health(&self, failure: Option<&'static str>) -> IssuerHealth {
        let now = self.clock.monotonic();
        match &*self.keys.current() {
            None => failure.map_or(IssuerHealth::Pending, |reason| IssuerHealth::Failed {
                reason,
            }),
            Some(keys) if keys.set().is_empty() => IssuerHealth::Failed {
                reason: "issuer.no_usable_key",
            },
            Some(keys) if keys.is_fresh(now) => IssuerHealth::Usable {
                keys: keys.set().len(),
                age: keys.age(now),
            },
            Some(keys) if keys.is_usable(now, self.settings.max_stale) => IssuerHealth::Stale {
                keys: keys.set().len(),
                age: keys.age(now),
                reason: failure,
            },
            Some(_) => IssuerHealth::Failed {
                reason: failure.unwrap_or("issuer.keys_too_old"),
            },
        }
    }
}
