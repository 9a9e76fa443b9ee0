//! Parts of lines, put together without the machinery of formatting: there are lines for every request.

use std::{cell::Cell, io::Write as _};

use portcullis_metadata::UnixTime;

use super::{json::write_escaped, timestamp};

/// A text as it is.
pub(crate) fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// A JSON string, quotes included. The characters of `EscapedText` are written as `\uXXXX`, which JSON does not ask of all
/// of them.
pub(crate) fn push_quoted(out: &mut Vec<u8>, text: &str) {
    push(out, "\"");
    if text.bytes().all(|byte| is_plain(byte) && byte != b'"' && byte != b'\\') {
        push(out, text);
    } else {
        let mut rest = text;
        while let Some(position) = rest.find(['"', '\\']) {
            let (before, from) = rest.split_at(position);
            let (special, behind) = from.split_at(1);
            let _ = write_escaped(out, before);
            push(out, "\\");
            push(out, special);
            rest = behind;
        }
        let _ = write_escaped(out, rest);
    }
    push(out, "\"");
}

/// Whether a byte is a visible ASCII character or a space.
fn is_plain(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// In decimal digits.
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    push(out, itoa::Buffer::new().format(number));
}

/// `2027-01-15T08:00:00.000Z`. Most lines share their second with the one before on the same thread.
pub(crate) fn push_timestamp(out: &mut Vec<u8>, time: UnixTime) {
    const LENGTH: usize = "2027-01-15T08:00:00.000Z".len();
    thread_local! {
        static LAST: Cell<(u64, [u8; LENGTH])> = const { Cell::new((u64::MAX, [0; LENGTH])) };
    }
    let (last, mut text) = LAST.get();
    if last != time.as_secs() {
        let mut fresh = Vec::with_capacity(32);
        // Writing to a vector cannot fail.
        let _ = write!(fresh, "{}", timestamp(UnixTime::from_secs(time.as_secs())));
        match fresh.first_chunk() {
            Some(fresh) => text = *fresh,
            None => return out.extend_from_slice(&fresh),
        }
        LAST.set((time.as_secs(), text));
    }
    let millis = (time.as_millis() % 1000) as u16;
    let [.., hundreds, tens, ones, _] = &mut text;
    [*hundreds, *tens, *ones] = [millis / 100, millis / 10 % 10, millis % 10].map(|digit| b'0' + digit as u8);
    out.extend_from_slice(&text);
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::EscapedText;
    use proptest::prelude::*;

    use super::*;

    /// Every time is written as the other log lines write it, whatever second came before.
    #[test]
    fn timestamps_are_those_of_other_lines() {
        for millis in [0, 999, 1_000, 1_799_999_999_999, 1_800_000_000_000, 1_800_000_000_047, 1_800_000_000_500] {
            let mut out = Vec::new();
            push_timestamp(&mut out, UnixTime::from_millis(millis));
            assert_eq!(String::from_utf8(out).unwrap(), timestamp(UnixTime::from_millis(millis)).to_string());
        }
    }

    #[test]
    fn numbers_and_texts() {
        for (number, text) in [(0, "0"), (7, "7"), (10, "10"), (1_000_999, "1000999")] {
            let mut out = Vec::new();
            push_number(&mut out, number);
            assert_eq!(out, text.as_bytes());
        }
        for text in ["", "plain /~", "a\"b", "a\\b", "line\nline", "Zoë", "\u{7f}\u{1}"] {
            let mut out = Vec::new();
            push_quoted(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
        let mut out = Vec::new();
        push_quoted(&mut out, "Zoë\u{1b}\"\u{202e}\u{e0041}\\");
        assert_eq!(out, "\"Zoë\\u001b\\\"\\u202e\\udb40\\udc41\\\\\"".as_bytes());
    }

    proptest! {
        /// J8: any text becomes a JSON string with its value, without a character that deceives a reader.
        #[test]
        fn quoted_texts_keep_their_value(text: String) {
            let mut out = Vec::new();
            push_quoted(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text.as_str());
            prop_assert!(!String::from_utf8(out).unwrap().contains(EscapedText::escapes));
        }
    }
}
