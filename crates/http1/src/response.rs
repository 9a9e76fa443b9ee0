mod body;
mod chunked;
mod framing;
mod head;

use bytes::BytesMut;
use http::StatusCode;

use self::head::HeadReader;
pub(crate) use self::{body::BodyReader, head::ResponseHead};
use crate::ProtocolError;

/// The maximum number of interim responses (1xx) before a response.
const MAX_INTERIM_RESPONSES: usize = 16;

/// Reads the head of the final response and discards the interim responses before it.
pub(crate) struct ResponseReader {
    head: HeadReader,
    is_response_to_head: bool,
    interim_responses: usize,
    /// Whether the ends of all interim responses are unambiguous.
    interim_keep_alive: bool,
}

impl ResponseReader {
    /// Returns a reader of the response to one request. `is_response_to_head` is whether the method
    /// is HEAD.
    pub(crate) fn new(is_response_to_head: bool) -> Self {
        Self {
            head: HeadReader::default(),
            is_response_to_head,
            interim_responses: 0,
            interim_keep_alive: true,
        }
    }

    /// Takes the head of the final response (RFC 9110 section 15) from `buffer`. Returns `None` if
    /// it is incomplete.
    pub(crate) fn read(
        &mut self,
        buffer: &mut BytesMut,
    ) -> Result<Option<ResponseHead>, ProtocolError> {
        loop {
            let Some(mut head) = self.head.read(buffer, self.is_response_to_head)? else {
                return Ok(None);
            };
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                head.keep_alive &= self.interim_keep_alive;
                return Ok(Some(head));
            }
            self.interim_keep_alive &= head.keep_alive;
            self.interim_responses += 1;
            if self.interim_responses > MAX_INTERIM_RESPONSES {
                return Err(ProtocolError::TooManyInterimResponses);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a response that is received in pieces of `piece` bytes. Returns its status, its body,
    /// and whether the body is complete.
    fn read(text: &[u8], piece: usize) -> Result<Option<(u16, Vec<u8>, bool)>, ProtocolError> {
        let mut reader = ResponseReader::new(false);
        let mut buffer = BytesMut::new();
        let mut response = None;
        for bytes in text.chunks(piece) {
            buffer.extend_from_slice(bytes);
            if response.is_none() {
                let head = reader.read(&mut buffer)?;
                response =
                    head.map(|head| (head.status, BodyReader::from(head.body_length), Vec::new()));
            }
            if let Some((_, body, data)) = &mut response {
                while let Some(taken) = body.read(&mut buffer)? {
                    assert!(!taken.is_empty());
                    data.extend_from_slice(&taken);
                }
            }
        }
        Ok(response.map(|(status, body, data)| (status.as_u16(), data, body.is_complete())))
    }

    fn responses() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just("content-length: 3\r\n"),
            Just("content-length: 3, 3\r\n"),
            Just("content-length: x\r\n"),
            Just("transfer-encoding: chunked\r\n"),
            Just("transfer-encoding: gzip\r\n"),
            Just("connection: close\r\n"),
            Just("x: y\n"),
            Just("x\r\n"),
        ];
        let status = prop_oneof![
            Just("HTTP/1.1 200 OK\r\n"),
            Just("HTTP/1.0 200 OK\r\n"),
            Just("HTTP/1.1 204 None\r\n"),
            Just("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 500\r\n"),
            Just("HTTP/1.2 200\r\n"),
        ];
        let body = prop_oneof![
            Just("abc"),
            Just("ab"),
            Just("3\r\nabc\r\n0\r\n\r\n"),
            Just("3\r\nabcd\r\n"),
            Just("\r\n")
        ];
        (status, prop::collection::vec(line, 0..3), body)
            .prop_map(|(status, lines, body)| format!("{status}{}\r\n{body}", lines.concat()))
    }

    proptest! {
        /// L1: the result does not depend on how the bytes are split.
        #[test]
        fn splitting_makes_no_difference(response in responses(), piece in 1_usize..9) {
            prop_assert_eq!(read(response.as_bytes(), piece), read(response.as_bytes(), response.len()));
        }

        /// L1: no input panics.
        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..9) {
            let response = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".as_slice(), &bytes].concat();
            let _ = read(&response, piece);
            let _ = read(&bytes, piece);
        }
    }
}
