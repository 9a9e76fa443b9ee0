//! [`MessageTooLarge`].

/// A message of the client is larger than
/// [`BridgeSettings::max_message`](crate::BridgeSettings::max_message).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is larger than {limit} bytes")]
#[non_exhaustive]
pub struct MessageTooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}
