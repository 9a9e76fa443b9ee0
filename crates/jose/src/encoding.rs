use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use base64_simd::AsOut as _;

/// Decodes unpadded base64url whose unused bits are zero; nothing else, no whitespace either, is taken.
pub(crate) fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    base64_simd::URL_SAFE_NO_PAD.decode_to_vec(text).ok()
}

/// Like [`decode`], into a buffer of the caller's. None too when it does not fit.
pub(crate) fn decode_into<'b>(text: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let buffer = buffer.get_mut(..decoded_len(text.len())?)?;
    Some(base64_simd::URL_SAFE_NO_PAD.decode(text, buffer.as_out()).ok()?)
}

/// How many bytes a text of this length decodes to, or none for a length that no base64url text has.
pub(crate) const fn decoded_len(length: usize) -> Option<usize> {
    match length % 4 {
        0 => Some(length / 4 * 3),
        2 => Some(length / 4 * 3 + 1),
        3 => Some(length / 4 * 3 + 2),
        _ => None,
    }
}

/// Encodes as unpadded base64url.
pub(crate) fn encode_to(bytes: impl AsRef<[u8]>, text: &mut String) {
    URL_SAFE_NO_PAD.encode_string(bytes, text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What may stand in a text, and what is near it.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let near = b"ABCXYZabcxyz0189-_".to_vec();
        let odd = vec![b'+', b'/', b'=', b' ', b'\n', b'\0', b'.', b'@', b'[', b'`', b'{', b'^', 0x7f, 0x80, 0xff];
        let byte = prop_oneof![200 => prop::sample::select(near), 1 => prop::sample::select(odd)];
        prop::collection::vec(byte, 0..200)
    }

    proptest! {
        /// C2: what is taken has one spelling, and another decoder reads the same bytes.
        #[test]
        fn decoders_agree(text in text()) {
            let expected = URL_SAFE_NO_PAD.decode(&text).ok();
            prop_assert_eq!(&decode(&text), &expected);
            let mut buffer = [0; 200];
            prop_assert_eq!(decode_into(&text, &mut buffer).map(<[u8]>::to_vec), expected);
        }

        /// C2: one byte that does not belong there is seen at any place.
        #[test]
        fn any_odd_byte_is_seen(length in 1..300_usize, place: prop::sample::Index, byte: u8) {
            let mut text = vec![b'A'; length];
            text[place.index(length)] = byte;
            prop_assert_eq!(decode(&text), URL_SAFE_NO_PAD.decode(&text).ok());
        }
    }

    #[test]
    fn what_does_not_fit_is_not_decoded() {
        assert_eq!(decode_into(b"AAAA", &mut [0; 2]), None);
        assert_eq!(decode_into(b"AAAA", &mut [1; 3]), Some(&[0; 3][..]));
        assert_eq!(decode_into(b"", &mut []), Some(&[][..]));
    }
}
