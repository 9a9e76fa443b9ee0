/// What a key of 32 bytes is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Seals records in the store.
    Records,
    /// Seals forms, and authenticates cookies and states.
    Forms,
    /// Authenticates refresh tokens.
    RefreshTokens,
    /// Derives the identifiers of public clients from their metadata.
    ClientIdentifiers,
}

impl Purpose {
    pub(crate) const ALL: [Self; 4] = [
        Self::Records,
        Self::Forms,
        Self::RefreshTokens,
        Self::ClientIdentifiers,
    ];

    /// Returns the name in the file of keys.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Forms => "forms",
            Self::RefreshTokens => "refresh-tokens",
            Self::ClientIdentifiers => "client-identifiers",
        }
    }
}
