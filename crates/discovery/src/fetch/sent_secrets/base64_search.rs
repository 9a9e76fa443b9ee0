//! Finds secrets in base64 (RFC 4648 sections 4 and 5), also inside a longer encoded text such as
//! `id:secret`.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use memchr::memmem;
use zeroize::Zeroizing;

/// The fewest characters that are compared. Fewer occur in texts by chance.
const MIN_CHARACTERS: usize = 6;

/// Adds the ranges of `text` that encode `secret`. `text` has only the characters of
/// [`standard_alphabet`].
///
/// Three bytes become four characters, so an encoded secret has one of three forms, according to
/// how many bytes precede it. The characters at its ends can encode other bytes too; they are in
/// the range and not compared.
pub(super) fn find(text: &[u8], secret: &[u8], found: &mut Vec<Range<usize>>) {
    for offset in 0..3 {
        let bytes = Zeroizing::new([vec![0; offset], secret.to_vec()].concat());
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*bytes));
        // The first character with bits of the secret alone, and the one after the last.
        let first = (offset * 8).div_ceil(6);
        let end = bytes.len() * 8 / 6;
        let Some(needle) = encoded
            .as_bytes()
            .get(first..end)
            .filter(|needle| needle.len() >= MIN_CHARACTERS)
        else {
            continue;
        };
        let has_shared_end = bytes.len() * 8 % 6 != 0;
        for start in memmem::find_iter(text, needle) {
            let mut range = start..start + needle.len();
            if offset > 0 && range.start > 0 && is_base64(text.get(range.start - 1)) {
                range.start -= 1;
            }
            if has_shared_end && is_base64(text.get(range.end)) {
                range.end += 1;
            }
            while text.get(range.end) == Some(&b'=') {
                range.end += 1;
            }
            found.push(range);
        }
    }
}

/// The text in which the characters of base64url are those of base64.
pub(super) fn standard_alphabet(text: &[u8]) -> Vec<u8> {
    let standard = |byte: &u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    };
    text.iter().map(standard).collect()
}

fn is_base64(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte))
}
