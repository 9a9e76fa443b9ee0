//! Text of peers: bounded strings, and addresses.

use std::{borrow::Cow, io::Write as _, net::IpAddr};

/// The maximum size of a text from a peer in bytes. Longer text is truncated.
pub const MAX_TEXT: usize = 256;

/// Returns the text if it has at most `max` bytes, and otherwise its first characters, of at most
/// `max` bytes, and an ellipsis.
pub fn truncated(text: &str, max: usize) -> Cow<'_, str> {
    let kept = &text[..text.floor_char_boundary(max)];
    if kept.len() == text.len() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{kept}…"))
    }
}

/// Appends an address. Those of most clients are IPv4.
pub(crate) fn write_address(out: &mut Vec<u8>, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        // Writing to a vector does not fail.
        let _ = write!(out, "{address}");
        return;
    };
    let [first, others @ ..] = address.octets();
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(first).as_bytes());
    for octet in others {
        out.push(b'.');
        out.extend_from_slice(digits.format(octet).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn addresses_have_their_usual_notation(address: IpAddr) {
            let mut out = Vec::new();
            write_address(&mut out, address);
            prop_assert_eq!(String::from_utf8(out).unwrap(), address.to_string());
        }
    }
}
