//! Errors of a connection.

use std::io;

use crate::Request;

/// The reason why a request got no response.
#[derive(Debug, thiserror::Error)]
#[error("the request got no response")]
#[non_exhaustive]
pub struct SendError {
    /// The reason why the connection is unusable.
    #[source]
    pub error: ConnectionError,
    /// The request, if none of its bytes were written. It can be sent over another connection, even
    /// if its method is not idempotent.
    pub unsent: Option<Request>,
}

/// The reason why a connection is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The response is not valid.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The server closed the connection before the head of the response.
    #[error("the connection was closed before the response")]
    Closed,
    /// The previous response does not allow another request on this connection
    /// ([`Connection::is_reusable`](crate::Connection::is_reusable)). Nothing was sent.
    #[error("the connection cannot be used for another request")]
    NotReusable,
    /// The server sent bytes before the request was sent.
    #[error("the server sent a response without a request")]
    UnsolicitedResponse,
}

/// The rule of HTTP/1.1 that a response violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The head is not that of an HTTP/1 response (RFC 9112 section 4), or has more than 128
    /// headers.
    #[error("the head of the response is not valid HTTP/1.1")]
    Head,
    /// The head is longer than 64 KiB.
    #[error("the head of the response is longer than 64 KiB")]
    HeadTooLong,
    /// More than 16 interim responses (1xx) precede the response.
    #[error("more than 16 interim responses precede the response")]
    TooManyInterimResponses,
    /// `Content-Length` is not a number, or has two values (RFC 9112 section 6.3).
    #[error("Content-Length is not a number, or has two values")]
    ContentLength,
    /// `Transfer-Encoding` is not exactly `chunked` (RFC 9112 section 6.1).
    #[error("Transfer-Encoding is not exactly \"chunked\"")]
    TransferEncoding,
    /// The chunked body violates RFC 9112 section 7.1, or a chunk-size line or the trailer section
    /// is too long.
    #[error("the chunked body is not valid")]
    Chunk,
    /// The connection was closed before the end of the body.
    #[error("the connection was closed before the end of the body")]
    IncompleteBody,
}
