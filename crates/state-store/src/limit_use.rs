//! [`LimitUse`]: requests that a replica has counted for a rate limit, and [`LimitCounts`], which
//! adds those of others.

/// Requests that one replica has allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// The limit, by a number that all replicas use for it.
    pub limit: u64,
    /// The hash of the address or principal, with a key that all replicas have.
    pub key: u64,
    /// The number of requests.
    pub count: u32,
}

/// Counts the requests that other replicas have allowed.
pub trait LimitCounts: Send + Sync + 'static {
    /// Adds uses. Called for each message, on the task of the connection; must not block.
    fn add(&self, uses: &[LimitUse]);
}

/// Ignores uses, for a process without rate limits.
impl LimitCounts for () {
    fn add(&self, _uses: &[LimitUse]) {}
}

#[cfg(feature = "redis")]
impl LimitUse {
    /// The length of the encoding, in bytes.
    pub(crate) const ENCODED_LENGTH: usize = 8 + 8 + 4;

    /// Returns the encoding for a message.
    pub(crate) fn encode(&self) -> [u8; Self::ENCODED_LENGTH] {
        let mut bytes = [0; Self::ENCODED_LENGTH];
        bytes[..8].copy_from_slice(&self.limit.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.key.to_be_bytes());
        bytes[16..].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }

    /// Returns the use with this encoding.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (limit, bytes) = bytes.split_first_chunk()?;
        let (key, count) = bytes.split_first_chunk()?;
        let count = u32::from_be_bytes(count.try_into().ok()?);
        Some(Self {
            limit: u64::from_be_bytes(*limit),
            key: u64::from_be_bytes(*key),
            count,
        })
    }
}
