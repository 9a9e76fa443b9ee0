//! Decompresses response bodies piece by piece.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::header;
use portcullis_discovery::{BodyStream, BoxFuture, FetchError, NetworkFailure, OpenResponse};

/// The response with its body decompressed, if it is in gzip format (RFC 9110 section 8.4.1.3).
pub(crate) fn decoded(mut response: OpenResponse) -> OpenResponse {
    let coding = response
        .headers
        .get(header::CONTENT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .map(str::trim);
    if coding.is_some_and(|coding| {
        coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip")
    }) {
        response.headers.remove(header::CONTENT_ENCODING);
        response.headers.remove(header::CONTENT_LENGTH);
        response.body = Box::new(GzipBody::new(response.body));
    }
    response
}

/// How many compressed bytes are decompressed at once. Gzip expands data at most about 1,030 times,
/// so a piece of the result has about 1 MiB at most. The reader of the body limits the whole.
const STEP: usize = 1024;

/// A body that is decompressed as it is read.
struct GzipBody {
    /// The compressed body.
    body: Box<dyn BodyStream>,
    /// Collects the decompressed bytes.
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Compressed bytes that are not decoded yet.
    compressed: Bytes,
    /// Whether a compressed byte has arrived. An empty body is valid in any coding.
    is_started: bool,
    /// Whether the compressed body has ended or failed.
    is_ended: bool,
}

impl GzipBody {
    fn new(body: Box<dyn BodyStream>) -> Self {
        let decoder = MultiGzDecoder::new(Vec::new());
        Self {
            body,
            decoder,
            compressed: Bytes::new(),
            is_started: false,
            is_ended: false,
        }
    }

    /// Decompresses the next step. Returns false if the data is not in gzip format.
    fn decode(&mut self) -> bool {
        let step = self.compressed.split_to(self.compressed.len().min(STEP));
        // The flush brings out what is complete, such as an event of a stream.
        self.decoder
            .write_all(&step)
            .and_then(|()| self.decoder.flush())
            .is_ok()
    }

    /// Ends the body with an error, because it is not in gzip format.
    fn fail(&mut self) -> Option<Result<Bytes, FetchError>> {
        self.is_ended = true;
        self.compressed.clear();
        self.decoder.get_mut().clear();
        Some(Err(FetchError::network(NetworkFailure::Interrupted)))
    }
}

impl BodyStream for GzipBody {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async {
            loop {
                let text = std::mem::take(self.decoder.get_mut());
                if !text.is_empty() {
                    return Some(Ok(text.into()));
                }
                if !self.compressed.is_empty() {
                    if !self.decode() {
                        return self.fail();
                    }
                    continue;
                }
                if self.is_ended {
                    return None;
                }
                match self.body.next().await {
                    Some(Ok(piece)) => {
                        self.is_started |= !piece.is_empty();
                        self.compressed = piece;
                    }
                    Some(Err(error)) => {
                        self.is_ended = true;
                        return Some(Err(error));
                    }
                    None => {
                        self.is_ended = true;
                        if self.is_started && self.decoder.try_finish().is_err() {
                            return self.fail();
                        }
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use flate2::{Compression, write::GzEncoder};
    use http::{HeaderMap, HeaderValue, StatusCode};
    use proptest::prelude::*;

    use super::*;

    struct Pieces(VecDeque<Bytes>);

    impl BodyStream for Pieces {
        fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
            Box::pin(async { self.0.pop_front().map(Ok) })
        }
    }

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn body(coding: &'static str, pieces: Vec<Vec<u8>>) -> Box<dyn BodyStream> {
        let headers =
            HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(coding))]);
        let body = Box::new(Pieces(pieces.into_iter().map(Bytes::from).collect()));
        decoded(OpenResponse {
            status: StatusCode::OK,
            headers,
            body,
            sent: Default::default(),
        })
        .body
    }

    /// The pieces of a body up to its end or error.
    fn read(mut body: Box<dyn BodyStream>) -> (Vec<Vec<u8>>, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut pieces = Vec::new();
            loop {
                match body.next().await {
                    Some(Ok(piece)) => pieces.push(piece.to_vec()),
                    Some(Err(_)) => {
                        assert!(body.next().await.is_none());
                        return (pieces, false);
                    }
                    None => return (pieces, true),
                }
            }
        })
    }

    #[test]
    fn other_codings_pass_unchanged() {
        assert_eq!(
            read(body("identity", vec![b"plain".to_vec()])),
            (vec![b"plain".to_vec()], true)
        );
        assert_eq!(
            read(body("GZIP", vec![])),
            (vec![], true),
            "an empty body is empty"
        );
        let two = [compressed(b"one "), compressed(b"two")].concat();
        assert_eq!(read(body("x-gzip", vec![two])).0.concat(), b"one two");
    }

    /// An event that the server has flushed arrives before the next one.
    #[test]
    fn a_flushed_event_is_not_held_back() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let mut pieces = Vec::new();
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            pieces.push(std::mem::take(encoder.get_mut()));
        }
        let mut stream = GzipBody::new(Box::new(Pieces(
            pieces.into_iter().map(Bytes::from).collect(),
        )));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            for event in ["data: 1\n\n", "data: 2\n\n"] {
                let mut read = Vec::new();
                while read.len() < event.len() {
                    read.extend_from_slice(&stream.next().await.unwrap().unwrap());
                }
                assert_eq!(read, event.as_bytes());
            }
        });
    }

    /// E11: a body that expands 1,000 times arrives in pieces of bounded size.
    #[test]
    fn a_bomb_arrives_in_bounded_pieces() {
        let (pieces, is_whole) = read(body("gzip", vec![compressed(&vec![0; 32 << 20])]));
        assert!(is_whole);
        assert!(pieces.len() > 30);
        assert!(
            pieces.iter().all(|piece| piece.len() <= 2 << 20),
            "{:?}",
            pieces.iter().map(Vec::len).max()
        );
    }

    #[test]
    fn a_cut_or_broken_body_is_an_error() {
        let whole = compressed(b"a text that is long enough to be cut");
        for length in 1..whole.len() {
            assert!(
                !read(body("gzip", vec![whole[..length].to_vec()])).1,
                "{length}"
            );
        }
        assert!(
            !read(body(
                "gzip",
                vec![b"not gzip at all, but plain text".to_vec()]
            ))
            .1
        );
    }

    proptest! {
        #[test]
        fn what_is_compressed_reads_back_however_it_is_cut(
            text in proptest::collection::vec(any::<u8>(), 0..5000),
            cut in 1_usize..700,
        ) {
            let pieces = compressed(&text).chunks(cut).map(<[u8]>::to_vec).collect();
            let (read, is_whole) = read(body("gzip", pieces));
            prop_assert!(is_whole);
            prop_assert_eq!(read.concat(), text);
        }

        #[test]
        fn no_bytes_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..64), 0..8)) {
            let _ = read(body("gzip", pieces));
        }
    }
}
