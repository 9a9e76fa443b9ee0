//! [`OversizedLine`]: finds the request identifier of a message that is too large to hold.

use crate::message::RequestId;

/// Finds the identifier of a JSON-RPC message while its bytes are discarded, so that the message
/// can be answered with an error: without one, the sender of a request waits for its response. Only
/// the members of the outermost object count.
///
/// It checks only what it needs to find these members, not that the text is JSON. It has these
/// limits:
/// - A name that is written with escapes (`"i\u0064"`) is not recognised.
/// - The last of two `id` members counts.
/// - An object with an `id` and without a `method` counts as a response.
#[derive(Debug, Default)]
pub(crate) struct OversizedLine {
    scan: Scan,
    /// The number of open objects and arrays in the current member's value.
    depth: u32,
    /// The name of the current member, at most [`MAX_NAME`] and one more byte.
    name: Vec<u8>,
    /// The value of `id` as written, at most [`MAX_ID`] and one more byte.
    id: Vec<u8>,
    has_method: bool,
}

/// Where the next byte is. Names and values are those of the outermost object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scan {
    /// Before the outermost object.
    #[default]
    Start,
    /// After `{` or `,`: before a name.
    BeforeName,
    /// In a name. `is_escaped` means that the previous byte is a backslash that escapes the next
    /// one.
    Name { is_escaped: bool },
    /// Before the colon after a name.
    AfterName,
    /// In a value, outside its strings.
    Value { is_id: bool },
    /// In a string of a value.
    String { is_id: bool, is_escaped: bool },
    /// After the outermost object.
    End,
    /// The line is not one object; its other bytes are ignored.
    Other,
}

/// What is known about a message that is too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OversizedMessage {
    /// A request with this identifier.
    Request(RequestId),
    /// A response to the request with this identifier.
    Response(RequestId),
    /// A notification, or text that is not a message.
    Other,
}

/// The maximum size of a member's name that is compared, in bytes.
const MAX_NAME: usize = 16;
/// The maximum size of an identifier, in bytes. A message with a longer one counts as one without.
const MAX_ID: usize = 1024;

impl OversizedLine {
    /// Reads the next piece of the line.
    pub(crate) fn push(&mut self, mut piece: &[u8]) {
        // Most bytes are in strings of other members. These are skipped up to their end or their
        // next escape.
        const SKIPPED: Scan = Scan::String {
            is_id: false,
            is_escaped: false,
        };
        while self.scan != Scan::Other {
            if self.scan == SKIPPED {
                let Some(end) = memchr::memchr2(b'"', b'\\', piece) else {
                    return;
                };
                piece = &piece[end..];
            }
            let Some((&byte, rest)) = piece.split_first() else {
                return;
            };
            self.scan = self.next(byte);
            piece = rest;
        }
    }

    /// Returns what is known about the message, at the end of the line.
    pub(crate) fn finish(self) -> OversizedMessage {
        if self.scan != Scan::End || self.id.len() > MAX_ID {
            return OversizedMessage::Other;
        }
        match RequestId::parse(&self.id) {
            Some(id) if self.has_method => OversizedMessage::Request(id),
            Some(id) => OversizedMessage::Response(id),
            None => OversizedMessage::Other,
        }
    }

    /// Reads a byte and returns where the next one is.
    fn next(&mut self, byte: u8) -> Scan {
        match (self.scan, byte) {
            (Scan::Start | Scan::BeforeName | Scan::AfterName | Scan::End, byte)
                if byte.is_ascii_whitespace() =>
            {
                self.scan
            }
            (Scan::Start, b'{') => Scan::BeforeName,
            (Scan::BeforeName, b'}') => Scan::End,
            // The quotation marks are not part of the name, nor is the colon part of the value.
            (Scan::BeforeName, b'"') => {
                self.name.clear();
                Scan::Name { is_escaped: false }
            }
            (Scan::Name { is_escaped: false }, b'"') => Scan::AfterName,
            (Scan::Name { is_escaped }, byte) => {
                push_bounded(&mut self.name, byte, MAX_NAME);
                Scan::Name {
                    is_escaped: byte == b'\\' && !is_escaped,
                }
            }
            (Scan::AfterName, b':') => self.begin_value(),
            (Scan::Value { .. }, b',') if self.depth == 0 => Scan::BeforeName,
            (Scan::Value { .. }, b'}') if self.depth == 0 => Scan::End,
            (Scan::Value { is_id } | Scan::String { is_id, .. }, byte) => {
                // The quotation marks are part of the identifier, because they distinguish `"1"`
                // from `1`.
                if is_id {
                    push_bounded(&mut self.id, byte, MAX_ID);
                }
                self.next_in_value(byte, is_id)
            }
            _ => Scan::Other,
        }
    }

    fn begin_value(&mut self) -> Scan {
        self.has_method |= self.name == b"method";
        let is_id = self.name == b"id";
        if is_id {
            self.id.clear();
        }
        Scan::Value { is_id }
    }

    /// Follows strings and nesting in a value, up to the byte before its end.
    fn next_in_value(&mut self, byte: u8, is_id: bool) -> Scan {
        if let Scan::String { is_escaped, .. } = self.scan {
            return match byte {
                b'"' if !is_escaped => Scan::Value { is_id },
                _ => Scan::String {
                    is_id,
                    is_escaped: byte == b'\\' && !is_escaped,
                },
            };
        }
        match byte {
            b'"' => {
                return Scan::String {
                    is_id,
                    is_escaped: false,
                };
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Scan::Value { is_id }
    }
}

/// Appends a byte, up to one beyond the maximum, which shows that the text is too long.
fn push_bounded(bytes: &mut Vec<u8>, byte: u8, max: usize) {
    if bytes.len() <= max {
        bytes.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str, piece: usize) -> OversizedMessage {
        let mut line = OversizedLine::default();
        for piece in text.as_bytes().chunks(piece) {
            line.push(piece);
        }
        line.finish()
    }

    fn id(text: &str) -> RequestId {
        RequestId::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_identifier_is_found_wherever_it_is() {
        let long = "x\\\"id\\\":5,{[".repeat(100);
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"id":8,"a":"{long}"}}}}"#),
            format!(
                r#"{{"method":"m","params":{{"id":8,"a":["{long}",{{"id":9}}]}},"jsonrpc":"2.0","id":7}}"#
            ),
            format!(r#" {{ "params" : "{long}" , "id" : 7 , "method" : "m" }} "#),
        ] {
            for piece in [1, 3, 1000] {
                assert_eq!(
                    read(&text, piece),
                    OversizedMessage::Request(id("7")),
                    "{text}"
                );
            }
        }
        let text = r#"{"id":"a,}\"b","method":"m"}"#;
        assert_eq!(read(text, 2), OversizedMessage::Request(id(r#""a,}\"b""#)));
        assert_eq!(
            read(r#"{"id":1,"result":{"method":"m"}}"#, 5),
            OversizedMessage::Response(id("1"))
        );
    }

    #[test]
    fn other_text_has_no_identifier() {
        let endless = format!(r#"{{"method":"m","id":"{}"}}"#, "x".repeat(5000));
        let precise = format!(r#"{{"method":"m","id":1.{}1}}"#, "0".repeat(5000));
        for text in [
            r#"{"method":"m","params":{"id":1}}"#,
            r#"[{"id":1,"method":"m"}]"#,
            r#"{"id":1,"method":"m""#,
            r#"{"id":{"a":1},"method":"m"}"#,
            r#"{"id":null,"method":"m"}"#,
            r#""id":1,"method":"m"}"#,
            r#"{"id":1,"method":"m"}{"id":2,"method":"m"}"#,
            r#"{"id" 1,"method":"m"}"#,
            r#"{x"id":1,"method":"m"}"#,
            r#"{"id":1,"method":"m"]"#,
            r#"{"i\u0064":1,"method":"m"}"#,
            "{}",
            "xxxx",
            "",
            &endless,
            &precise,
        ] {
            assert_eq!(read(text, 4), OversizedMessage::Other, "{text}");
        }
    }

    #[test]
    fn the_last_identifier_counts() {
        for (text, expected) in [
            (
                r#"{"id":1,"id":2,"method":"m"}"#,
                OversizedMessage::Request(id("2")),
            ),
            (
                r#"{"id":1,"method":"m","id":null}"#,
                OversizedMessage::Other,
            ),
            (r#"{"id":1}"#, OversizedMessage::Response(id("1"))),
            (
                r#"{"id":"1","error":{}}"#,
                OversizedMessage::Response(id(r#""1""#)),
            ),
        ] {
            assert_eq!(read(text, 3), expected, "{text}");
        }
    }

    proptest! {
        /// Any JSON in the other members leaves the identifier as it is.
        #[test]
        fn other_members_do_not_confuse(texts in proptest::collection::vec(".*", 0..5), number in any::<i64>(), cut in 1_usize..9) {
            let params: Value = texts.iter().map(|text| json!({ text.as_str(): [text, { "id": 1 }] })).collect();
            let text = json!({ "a": params, "id": number, "method": "m", "params": params }).to_string();
            prop_assert_eq!(read(&text, cut), OversizedMessage::Request(id(&number.to_string())));
        }

        /// The sizes are limited, and no bytes cause a panic.
        #[test]
        fn memory_is_bounded_for_any_bytes(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..64), 0..40)) {
            let mut line = OversizedLine::default();
            for piece in &pieces {
                line.push(piece);
            }
            prop_assert!(line.name.len() <= MAX_NAME + 1);
            prop_assert!(line.id.len() <= MAX_ID + 1);
            let _ = line.finish();
        }
    }
}
