//! What is kept beside a principal for the lines of its requests.

use std::sync::OnceLock;

use portcullis_verifier::Principal;

use crate::audit::AuditedUser;

/// What lines say of a principal, each put together by the first request with its token.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) audit: OnceLock<AuditedUser>,
}

impl Recorded {
    /// What is kept of this principal.
    pub(crate) fn of(principal: &Principal) -> Option<&Self> {
        principal.recorded(|_| Self::default())
    }
}

#[cfg(test)]
pub(crate) mod testing;
