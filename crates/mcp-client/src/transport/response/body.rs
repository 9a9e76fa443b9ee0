//! Reads the whole body of a response.

use std::time::Duration;

use portcullis_discovery::{BodyStream, FetchError};
use tokio::time::timeout;

use crate::{error::McpError, transport::message_budget::Reservation};

/// The limits for reading a body.
pub struct BodyLimits {
    /// The time limit for the whole body.
    pub timeout: Duration,
    /// The maximum size in bytes.
    pub max_message: usize,
}

/// Reads a whole body. The reservation grows with it.
///
/// # Errors
/// Fails if the body is larger than the limit or not complete in time, or if the connection is
/// interrupted.
pub async fn read_body(
    mut body: Box<dyn BodyStream>,
    limits: &BodyLimits,
    reservation: &mut Reservation,
) -> Result<Vec<u8>, McpError> {
    let read = async {
        let mut bytes: Vec<u8> = Vec::new();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(McpError::Fetch)?;
            if piece.len() > limits.max_message - bytes.len() {
                return Err(McpError::TooLarge);
            }
            reservation.grow_to(bytes.len() + piece.len()).await;
            bytes.reserve(capacity_for(&bytes, piece.len(), limits.max_message));
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    };
    timeout(limits.timeout, read)
        .await
        .unwrap_or(Err(McpError::Fetch(FetchError::Timeout)))
}

/// The size from which a body grows faster, in bytes.
const LARGE: usize = 1024 * 1024;

/// Returns how many bytes to reserve before this many are added to a body. A large body becomes
/// four times as large: its earlier memory, which is not returned to the system at once, is then
/// small.
fn capacity_for(bytes: &Vec<u8>, added: usize, max: usize) -> usize {
    if bytes.len() < LARGE || added <= bytes.capacity() - bytes.len() {
        return added;
    }
    added.max((3 * bytes.len()).min(max - bytes.len()))
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
        let limits = BodyLimits {
            timeout: Duration::from_secs(1),
            max_message: 10,
        };
        for (pieces, read) in [
            (vec![10], true),
            (vec![11], false),
            (vec![5, 5], true),
            (vec![5, 6], false),
        ] {
            let size: usize = pieces.iter().sum();
            match read_body(
                Box::new(Pieces(pieces)),
                &limits,
                &mut Reservation::uncounted(),
            )
            .await
            {
                Ok(body) => assert_eq!((body.len(), read), (size, true)),
                Err(error) => assert_eq!((error.code(), read), ("mcp.too_large", false)),
            }
        }
    }
}
