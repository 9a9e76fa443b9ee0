//! Errors of reservations, identifiers and keys, with their stable codes.

use portcullis_reason_codes::ReasonCodes;

/// The reason why a session cannot be reserved or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum ReservationError {
    /// [`SessionSettings::max_total`](crate::SessionSettings::max_total) is reached.
    #[error("the maximum number of sessions is reached")]
    #[code = "session.store_full"]
    TotalLimit,
    /// [`SessionSettings::max_per_owner`](crate::SessionSettings::max_per_owner) is reached and all
    /// sessions of the owner are in use.
    #[error("the owner's maximum number of sessions is reached, and all are in use")]
    #[code = "session.owner_full"]
    OwnerLimit,
    /// [`SessionSettings::max_per_subject`](crate::SessionSettings::max_per_subject) is reached.
    #[error("the subject's maximum number of sessions is reached")]
    #[code = "session.subject_full"]
    SubjectLimit,
    /// The operating system returned no random bytes for an identifier.
    #[error("the operating system returned no random bytes")]
    #[code = "session.no_randomness"]
    NoRandomness,
}

/// The reason why an identifier is not that of an active session of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum ResolveError {
    /// The identifier was not issued to this owner for this resource.
    #[error("the session identifier is unknown")]
    #[code = "session.unknown"]
    Unknown,
    /// The identifier was issued to this owner for this resource, but the session has ended.
    #[error("the session has ended")]
    #[code = "session.ended"]
    Ended,
    /// Another process opened the session. This process cannot continue it before it knows all ends
    /// that were recorded ([`SessionJournal::is_complete`](crate::SessionJournal::is_complete)).
    /// Try again.
    #[error("the ends of sessions are not known yet")]
    #[code = "session.not_ready"]
    NotReady,
    /// Another process opened the session. This process cannot continue it, because a limit is
    /// reached.
    #[error(transparent)]
    #[code(transparent)]
    Capacity(#[from] ReservationError),
}

/// The reason why keys cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum KeyError {
    /// The operating system returned no random bytes.
    #[error("the operating system returned no random bytes")]
    #[code = "session.no_randomness"]
    NoRandomness,
    /// The secret has fewer than 32 bytes.
    #[error("the secret of a session key must have at least 32 bytes")]
    #[code = "session.key_too_short"]
    TooShort,
    /// The list of keys is empty.
    #[error("the list of session keys is empty")]
    #[code = "session.no_key"]
    None,
    /// The list has more than 16 keys.
    #[error("there are more than 16 session keys")]
    #[code = "session.too_many_keys"]
    TooMany,
    /// The list contains a key twice.
    #[error("a session key is listed twice")]
    #[code = "session.key_repeated"]
    Repeated,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes are stable, for logs and alarms. Messages may change.
    #[test]
    fn codes_are_stable() {
        let codes = [
            ReservationError::TotalLimit.code(),
            ReservationError::OwnerLimit.code(),
            ReservationError::SubjectLimit.code(),
            ReservationError::NoRandomness.code(),
            ResolveError::Unknown.code(),
            ResolveError::Ended.code(),
            ResolveError::NotReady.code(),
            ResolveError::Capacity(ReservationError::TotalLimit).code(),
            KeyError::NoRandomness.code(),
            KeyError::TooShort.code(),
            KeyError::None.code(),
            KeyError::TooMany.code(),
            KeyError::Repeated.code(),
        ];
        let expected = [
            "session.store_full",
            "session.owner_full",
            "session.subject_full",
            "session.no_randomness",
            "session.unknown",
            "session.ended",
            "session.not_ready",
            "session.store_full",
            "session.no_randomness",
            "session.key_too_short",
            "session.no_key",
            "session.too_many_keys",
            "session.key_repeated",
        ];
        assert_eq!(codes, expected);
    }
}
