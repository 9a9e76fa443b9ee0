/// How an answer is not HTTP/1.1 (RFC 9112).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the head of the answer is not HTTP")]
    Head,
    #[error("the head of the answer is longer than 64 KiB")]
    HeadTooLong,
    #[error("more interim answers than a server has reason to send")]
    TooManyInterim,
    #[error("the answer says its length in two ways, or not in a number")]
    Length,
    #[error("the answer has a transfer coding that was not asked for")]
    TransferCoding,
    #[error("the chunks of the answer are not framed as RFC 9112 says")]
    Chunk,
    #[error("the answer broke off before its end")]
    BrokenOff,
}
