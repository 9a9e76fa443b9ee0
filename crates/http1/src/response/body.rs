use bytes::{Bytes, BytesMut};

use super::{chunked::ChunkedDecoder, framing::BodyLength};
use crate::ProtocolError;

/// The part of a response body that was not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyReader {
    /// This many bytes remain.
    Length(u64),
    /// The rest is chunked.
    Chunked(ChunkedDecoder),
    /// Everything up to the end of the connection remains.
    UntilClose,
    /// The body was read to its end.
    Complete,
}

impl BodyReader {
    /// Takes the next data from `buffer`. Returns `None` if `buffer` holds no further data or the
    /// body is complete.
    pub(crate) fn read(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, ProtocolError> {
        match self {
            Self::Chunked(decoder) => {
                let data = decoder.decode(buffer);
                if *decoder == ChunkedDecoder::Complete {
                    *self = Self::Complete;
                }
                data
            }
            Self::Complete => Ok(None),
            _ if buffer.is_empty() => Ok(None),
            Self::UntilClose => Ok(Some(buffer.split().freeze())),
            Self::Length(length) => {
                let data = buffer
                    .split_to(
                        usize::try_from(*length)
                            .unwrap_or(usize::MAX)
                            .min(buffer.len()),
                    )
                    .freeze();
                *self = Self::from(BodyLength::Known(*length - data.len() as u64));
                Ok(Some(data))
            }
        }
    }

    /// Ends the body, because the connection has ended. Fails if the body is incomplete.
    pub(crate) fn close(&mut self) -> Result<(), ProtocolError> {
        match std::mem::replace(self, Self::Complete) {
            Self::UntilClose | Self::Complete => Ok(()),
            Self::Length(_) | Self::Chunked(_) => Err(ProtocolError::IncompleteBody),
        }
    }

    /// Returns whether the body was read to its end.
    pub(crate) fn is_complete(self) -> bool {
        self == Self::Complete
    }

    /// Returns the number of remaining bytes, if it is known.
    pub(crate) fn remaining(self) -> Option<u64> {
        match self {
            Self::Complete => Some(0),
            Self::Length(length) => Some(length),
            Self::Chunked(_) | Self::UntilClose => None,
        }
    }
}

impl From<BodyLength> for BodyReader {
    fn from(length: BodyLength) -> Self {
        match length {
            BodyLength::Known(0) => Self::Complete,
            BodyLength::Known(length) => Self::Length(length),
            BodyLength::Chunked => Self::Chunked(ChunkedDecoder::Size),
            BodyLength::UntilClose => Self::UntilClose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L1: data is taken up to the end of the body. What follows stays in the buffer.
    #[test]
    fn a_body_ends_at_its_length() {
        let mut body = BodyReader::from(BodyLength::Known(3));
        let mut buffer = BytesMut::from("ab");
        assert_eq!(body.read(&mut buffer), Ok(Some(Bytes::from_static(b"ab"))));
        assert_eq!(body.read(&mut buffer), Ok(None));
        assert_eq!(body.remaining(), Some(1));
        buffer.extend_from_slice(b"cd");
        assert_eq!(body.read(&mut buffer), Ok(Some(Bytes::from_static(b"c"))));
        assert!(body.is_complete());
        assert!(body.read(&mut buffer) == Ok(None));
        assert_eq!(&buffer[..], b"d");
    }

    /// L1: only a body without a length ends with the connection.
    #[test]
    fn the_end_of_the_connection_ends_some_bodies() {
        for (length, expected) in [
            (BodyLength::Known(0), Ok(())),
            (BodyLength::Known(1), Err(ProtocolError::IncompleteBody)),
            (BodyLength::Chunked, Err(ProtocolError::IncompleteBody)),
            (BodyLength::UntilClose, Ok(())),
        ] {
            let mut body = BodyReader::from(length);
            assert_eq!(body.close(), expected, "{length:?}");
            assert!(body.is_complete(), "{length:?}");
        }
    }
}
