//! Base64url without padding (RFC 4648 section 5), and hashes in base64url.
//!
//! Tokens are decoded by `base64_simd`, which uses vector instructions; the `base64` crate encodes.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use base64_simd::AsOut as _;
use sha2::{Digest as _, Sha256};

/// Decodes unpadded base64url. Returns `None` for padding, whitespace, other characters and
/// non-zero unused bits.
pub(crate) fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    base64_simd::URL_SAFE_NO_PAD.decode_to_vec(text).ok()
}

/// Like [`decode`], but decodes into a buffer. Also returns `None` if the buffer is too small.
pub(crate) fn decode_into<'b>(text: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let buffer = buffer.get_mut(..decoded_len(text.len())?)?;
    Some(
        base64_simd::URL_SAFE_NO_PAD
            .decode(text, buffer.as_out())
            .ok()?,
    )
}

/// Returns the decoded length of `length` base64url characters, or `None` if there is no such
/// encoding.
pub(crate) const fn decoded_len(length: usize) -> Option<usize> {
    match length % 4 {
        0 => Some(length / 4 * 3),
        2 => Some(length / 4 * 3 + 1),
        3 => Some(length / 4 * 3 + 2),
        _ => None,
    }
}

/// Appends the bytes to `output` in unpadded base64url.
pub(crate) fn encode_to(bytes: impl AsRef<[u8]>, output: &mut String) {
    URL_SAFE_NO_PAD.encode_string(bytes, output);
}

/// Returns the SHA-256 hash of a string in base64url: the form of thumbprints (RFC 7638) and `ath`
/// (RFC 9449).
pub(crate) fn sha256_base64url(input: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(input))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Strings of base64url characters and, rarely, others.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let valid = b"ABCXYZabcxyz0189-_".to_vec();
        let invalid = vec![
            b'+', b'/', b'=', b' ', b'\n', b'\0', b'.', b'@', b'[', b'`', b'{', b'^', 0x7f, 0x80,
            0xff,
        ];
        let byte =
            prop_oneof![200 => prop::sample::select(valid), 1 => prop::sample::select(invalid)];
        prop::collection::vec(byte, 0..200)
    }

    proptest! {
        /// C2: the decoder gives the same result as the `base64` crate.
        #[test]
        fn decoders_agree(text in text()) {
            let expected = URL_SAFE_NO_PAD.decode(&text).ok();
            prop_assert_eq!(&decode(&text), &expected);
            let mut buffer = [0; 200];
            prop_assert_eq!(decode_into(&text, &mut buffer).map(<[u8]>::to_vec), expected);
        }

        /// C2: one invalid byte is found at any position.
        #[test]
        fn any_invalid_byte_is_found(length in 1..300_usize, position: prop::sample::Index, byte: u8) {
            let mut text = vec![b'A'; length];
            text[position.index(length)] = byte;
            prop_assert_eq!(decode(&text), URL_SAFE_NO_PAD.decode(&text).ok());
        }
    }

    #[test]
    fn a_small_buffer_is_rejected() {
        assert_eq!(decode_into(b"AAAA", &mut [0; 2]), None);
        assert_eq!(decode_into(b"AAAA", &mut [1; 3]), Some(&[0; 3][..]));
        assert_eq!(decode_into(b"", &mut []), Some(&[][..]));
    }
}
