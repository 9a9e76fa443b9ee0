/// Why no room for a new session was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReservationError {
    /// [`SessionSettings::max_total`](crate::SessionSettings::max_total) is reached.
    #[error("the store holds as many sessions as it may")]
    TotalLimit,
    /// [`SessionSettings::max_per_owner`](crate::SessionSettings::max_per_owner) is reached, and all sessions of the owner
    /// are in use.
    #[error("the owner holds as many sessions as it may, and all are in use")]
    OwnerLimit,
    /// The operating system gave no random bytes, so that no identifier can be made.
    #[error("the operating system gave no random bytes")]
    NoRandomness,
}

impl ReservationError {
    /// The stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TotalLimit => "session.store_full",
            Self::OwnerLimit => "session.owner_full",
            Self::NoRandomness => "session.no_randomness",
        }
    }
}

/// Why an identifier names no session that the caller may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Never issued to this owner for this resource: malformed, made up, or somebody else's.
    #[error("the session identifier is unknown")]
    Unknown,
    /// Issued to this very owner for this resource, and ended since (or lost with a restart).
    #[error("the session has ended")]
    Ended,
}

impl ResolveError {
    /// The stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown => "session.unknown",
            Self::Ended => "session.ended",
        }
    }
}

/// Why there is no usable key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    NoRandomness,
    /// The secret has less than 32 bytes.
    #[error("the secret of a session key has at least 32 bytes")]
    TooShort,
    /// The list of keys is empty.
    #[error("there is no session key")]
    None,
    /// The list of keys has more than 16.
    #[error("there are more than 16 session keys")]
    TooMany,
    /// The list of keys has one of them twice.
    #[error("a session key is there twice")]
    Repeated,
}

impl KeyError {
    /// The stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRandomness => "session.no_randomness",
            Self::TooShort => "session.key_too_short",
            Self::None => "session.no_key",
            Self::TooMany => "session.too_many_keys",
            Self::Repeated => "session.key_repeated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes are for logs and alarms: they do not change with the texts.
    #[test]
    fn codes_are_stable() {
        let codes = [
            ReservationError::TotalLimit.code(),
            ReservationError::OwnerLimit.code(),
            ReservationError::NoRandomness.code(),
            ResolveError::Unknown.code(),
            ResolveError::Ended.code(),
            KeyError::NoRandomness.code(),
            KeyError::TooShort.code(),
            KeyError::None.code(),
            KeyError::TooMany.code(),
            KeyError::Repeated.code(),
        ];
        let expected = [
            "session.store_full",
            "session.owner_full",
            "session.no_randomness",
            "session.unknown",
            "session.ended",
            "session.no_randomness",
            "session.key_too_short",
            "session.no_key",
            "session.too_many_keys",
            "session.key_repeated",
        ];
        assert_eq!(codes, expected);
    }
}
