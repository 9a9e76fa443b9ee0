use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Decodes unpadded base64url whose unused bits are zero; nothing else, no whitespace either, is taken.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Like [`decode`], into a buffer of the caller's. None too when it does not fit.
pub(crate) fn decode_into<'b>(text: &str, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let length = URL_SAFE_NO_PAD.decode_slice(text, buffer).ok()?;
    buffer.get(..length)
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
