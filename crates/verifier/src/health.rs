use std::time::Duration;

/// Whether an issuer's tokens can be verified right now, for readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IssuerHealth {
    /// It has fresh keys.
    Usable {
        /// How many keys verify.
        keys: usize,
        /// How long ago they were fetched.
        age: Duration,
    },
    /// Its keys are past their age and serve on, since it cannot be asked.
    Stale {
        /// How many keys verify.
        keys: usize,
        /// How long ago they were fetched.
        age: Duration,
        /// The code of the last failure, if the last refresh failed.
        reason: Option<&'static str>,
    },
    /// Its tokens are judged by asking it, and it is known where.
    Introspected {
        /// The code of the last call's failure, if that call failed.
        reason: Option<&'static str>,
    },
    /// It has not been asked yet, or the first answer is still to come.
    Pending,
    /// It has no key to verify with, or it is not known where to ask it.
    Failed {
        /// The code of the last failure.
        reason: &'static str,
    },
}

impl IssuerHealth {
    /// Whether tokens of the issuer can be verified.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Usable { .. } | Self::Stale { .. } | Self::Introspected { .. })
    }
}
