//! The content type and the errors of responses, and the reading of whole bodies.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use portcullis_client::ResourceChallenge;
use portcullis_discovery::{BodyStream, FetchError};
use portcullis_mcp::ErrorCode;
use tokio::time::timeout;

use crate::{error::McpError, message_budget::Reservation};

/// The limits for reading a response.
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) max_message: usize,
}

/// The media type of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    Stream,
    Other,
}

impl Content {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = value.split(';').next().unwrap_or("").trim();
        if kind.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if kind.eq_ignore_ascii_case("text/event-stream") {
            Self::Stream
        } else {
            Self::Other
        }
    }
}

/// Reads a whole body. The reservation grows with it.
pub(crate) async fn read_body(
    mut body: Box<dyn BodyStream>,
    limits: &Limits,
    reservation: &mut Reservation,
) -> Result<Vec<u8>, McpError> {
    let read = async {
        let mut held = Vec::new();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(McpError::Fetch)?;
            if piece.len() > limits.max_message - held.len() {
                return Err(McpError::TooLarge);
            }
            reservation.grow_to(held.len() + piece.len()).await;
            held.extend_from_slice(&piece);
        }
        Ok(held)
    };
    timeout(limits.timeout, read).await.unwrap_or(Err(McpError::Fetch(FetchError::Timeout)))
}

/// The error of a response whose challenge requires more scopes than the token has.
pub(crate) fn insufficient_scope(status: StatusCode, headers: &HeaderMap) -> Option<McpError> {
    if status != StatusCode::FORBIDDEN {
        return None;
    }
    let challenge = ResourceChallenge::from_headers(headers);
    challenge
        .is_insufficient_scope()
        .then(|| McpError::InsufficientScope { needed: challenge.scopes().cloned().unwrap_or_default() })
}

/// Whether the server does not know the session and has not processed the request: 404 as the specification defines, or
/// 400 with the code that implementations use.
pub(crate) fn is_unknown_session(status: StatusCode, code: Option<i64>) -> bool {
    match status {
        StatusCode::NOT_FOUND => code != Some(ErrorCode::MethodNotFound.value()),
        StatusCode::BAD_REQUEST => code == Some(ErrorCode::ServerError.value()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use portcullis_discovery::BoxFuture;

    use super::*;

    struct Pieces(Vec<usize>);

    impl BodyStream for Pieces {
        fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
            Box::pin(async { self.0.pop().map(|size| Ok(vec![b'x'; size].into())) })
        }
    }

    /// The limit is for the whole body, however it is split.
    #[tokio::test]
    async fn a_body_is_bounded_as_a_whole() {
        let limits = Limits { timeout: Duration::from_secs(1), max_message: 10 };
        for (pieces, read) in [(vec![10], true), (vec![11], false), (vec![5, 5], true), (vec![5, 6], false)] {
            let size: usize = pieces.iter().sum();
            match read_body(Box::new(Pieces(pieces)), &limits, &mut Reservation::uncounted()).await {
                Ok(body) => assert_eq!((body.len(), read), (size, true)),
                Err(error) => assert_eq!((error.code(), read), ("mcp.too_large", false)),
            }
        }
    }
}
