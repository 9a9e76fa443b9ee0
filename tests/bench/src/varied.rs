//! Requests of which no two are the same.

use std::ops::Range;

/// A request in which some bytes are another text each time.
#[derive(Clone)]
pub(super) struct Varied {
    request: Vec<u8>,
    place: Range<usize>,
    /// The text at that place, always of the same length.
    text: fn(u64) -> String,
}

impl Varied {
    /// Always the same bytes.
    pub(super) fn not_at_all(request: Vec<u8>) -> Self {
        Self { request, place: 0..0, text: |_| String::new() }
    }

    /// The text takes the place of what stands where `part` first does in the request, from `offset` on.
    pub(super) fn new(request: Vec<u8>, part: &str, offset: usize, text: fn(u64) -> String) -> Self {
        let found = request.windows(part.len()).position(|bytes| bytes == part.as_bytes()).unwrap_or_default();
        let start = found + offset;
        Self { request, place: start..start + text(0).len(), text }
    }

    /// The request of this number.
    pub(super) fn number(&mut self, number: u64) -> &[u8] {
        if !self.place.is_empty() {
            self.request[self.place.clone()].copy_from_slice((self.text)(number).as_bytes());
        }
        &self.request
    }

    /// Bytes of each.
    pub(super) fn len(&self) -> usize {
        self.request.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_differ_in_one_place() {
        let mut varied = Varied::new(b"GET /0000/0000".to_vec(), "/0000", 1, |number| format!("{number:04}"));
        assert_eq!(varied.number(7), b"GET /0007/0000");
        assert_eq!(varied.number(12), b"GET /0012/0000");
        assert_eq!(varied.len(), 14);
    }

    #[test]
    fn or_not_at_all() {
        assert_eq!(Varied::not_at_all(b"POST".to_vec()).number(7), b"POST");
    }
}
