//! [`RequestTemplate`]: requests with a part that differs from request to request.

use std::ops::Range;

use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::http::find;

/// A request of which one part is generated from a number.
#[derive(Clone)]
pub(super) struct RequestTemplate {
    request: Vec<u8>,
    place: Range<usize>,
    /// Generates the text at that place. All texts have the same length.
    text: fn(u64) -> String,
}

impl RequestTemplate {
    /// Creates a request that is always the same.
    pub(super) fn fixed(request: Vec<u8>) -> Self {
        Self {
            request,
            place: 0..0,
            text: |_| String::new(),
        }
    }

    /// Creates a template. The text replaces the bytes of the request that start `offset` bytes
    /// after the start of `part`. Fails if the request does not contain the part, or ends before
    /// the end of the text.
    pub(super) fn new(
        request: Vec<u8>,
        part: &str,
        offset: usize,
        text: fn(u64) -> String,
    ) -> anyhow::Result<Self> {
        let found =
            find(&request, part.as_bytes()).context("the request does not contain the part")?;
        let place = found + offset..found + offset + text(0).len();
        ensure!(
            place.end <= request.len(),
            "the request ends before the end of the text"
        );
        Ok(Self {
            request,
            place,
            text,
        })
    }

    pub(super) fn number(&mut self, number: u64) -> &[u8] {
        if !self.place.is_empty() {
            self.request[self.place.clone()].copy_from_slice((self.text)(number).as_bytes());
        }
        &self.request
    }

    /// Returns the length of each request.
    pub(super) fn len(&self) -> usize {
        self.request.len()
    }
}

/// Returns eleven characters that are allowed in a token, for a part that differs from request to
/// request.
pub(super) fn token_letters(number: u64) -> String {
    URL_SAFE_NO_PAD.encode(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_differ_in_one_place() {
        let mut template = RequestTemplate::new(b"GET /0000/0000".to_vec(), "/0000", 1, |number| {
            format!("{number:04}")
        })
        .unwrap();
        assert_eq!(template.number(7), b"GET /0007/0000");
        assert_eq!(template.number(12), b"GET /0012/0000");
        assert_eq!(template.len(), 14);
    }

    #[test]
    fn a_part_must_be_in_the_request() {
        for (part, offset) in [("/1111", 0), ("/0000", 2)] {
            assert!(
                RequestTemplate::new(b"GET /0000".to_vec(), part, offset, |_| "1234".to_owned())
                    .is_err(),
                "{part}"
            );
        }
    }

    #[test]
    fn a_fixed_request_has_no_variable_part() {
        assert_eq!(RequestTemplate::fixed(b"POST".to_vec()).number(7), b"POST");
    }
}
